package request

import (
	"sync"
	"sync/atomic"
)

// MostAtATime is for how many numbers AtATime calls f at a time.
const MostAtATime = 32

// AtATime calls f with each number below n, with several at a time: their requests
// go to the server together, and none waits for all those before it. When f has
// returned false it begins no more. It returns when all have ended that began.
func AtATime(n int, f func(i int) bool) {
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(n, MostAtATime) {
		all.Go(func() {
			for more := true; more; {
				i := int(next.Add(1) - 1)
				more = i < n && f(i)
			}
		})
	}
	all.Wait()
}
