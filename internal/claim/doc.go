// Package claim says what callers of a client hold and wait for: see [Claim].
// Nothing is recorded for that. The engines are asked, each at the moment, and
// look at what they have.
package claim
