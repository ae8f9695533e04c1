// Package goredis tests the adapter for go-redis, whose own module requires
// nothing for its tests.
package goredis
