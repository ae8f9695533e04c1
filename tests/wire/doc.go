// Package wire compares what redlatch writes to Redis with what Redisson wrote: the
// golden files of internal/wire.
package wire
