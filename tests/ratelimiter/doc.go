// Package ratelimiter tells of rate limiters and of the queue that callers of one
// process form before one.
package ratelimiter
