// Package models lets clients at random use a lock or a synchronizer, with faults, and
// checks after each step what must always be true.
package models
