//go:build unix

package leaktest

import (
	"syscall"
	"time"
)

// processor returns what this process, and those that it started and waited for,
// have taken of the processor.
func processor() (sum time.Duration) {
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var used syscall.Rusage
		if syscall.Getrusage(who, &used) == nil {
			sum += time.Duration(used.Utime.Nano() + used.Stime.Nano())
		}
	}
	return sum
}
