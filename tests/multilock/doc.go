// Package multilock tells of several locks that are taken as one: multi locks and red
// locks.
package multilock
