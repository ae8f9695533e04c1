// Package rueidis tests the adapter for rueidis, whose own module requires nothing
// for its tests.
package rueidis
