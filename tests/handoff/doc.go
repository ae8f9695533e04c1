// Package handoff tests how a lock or a permit passes inside a process, and how it
// goes to other processes in their turn.
package handoff
