// Package readwrite tells of read-write locks: both sides, nests of them, readers that
// share a hold, and Redisson beside them.
package readwrite
