// Package shutdown tests how a client comes to its end with Shutdown: what is refused, what still works, and what
// others get, and when.
package shutdown
