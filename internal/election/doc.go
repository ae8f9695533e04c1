// Package election has the candidates of a client: see [Elections]. The leader is
// the candidate that holds a lock with a fencing token, and all that is said of
// that lock is true here. What this package adds is the life of a candidate: it
// campaigns, leads and campaigns again, and it can be made to resign.
package election
