package redlatch

// EachClaim yields what a client tells who asks.
var EachClaim = (*Client).eachClaim
