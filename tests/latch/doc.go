// Package latch tells of count-down latches and barriers, and of the sessions that
// keep their counts exact.
package latch
