// Package fairlock tells of the queue of the fair lock: who stands in it, who leaves
// it, who is swept out of it.
package fairlock
