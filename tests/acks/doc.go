// Package acks tells what becomes of holds and permits while replicas are asked to
// acknowledge them, as Config.Acks demands.
package acks
