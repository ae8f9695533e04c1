package overview

import (
	"fmt"
	"time"

	"github.com/redlatch/redlatch"
)

// Rate is how a rate limiter is configured.
type Rate struct {
	Permits   int   `json:"permits"`
	Interval  int64 `json:"interval_ms"`
	PerClient bool  `json:"per_client"`
	KeepAlive int64 `json:"keep_alive_ms"` // 0: for ever
}

// Text is a rate in words.
func (r *Rate) Text() string {
	return fmt.Sprintf("%d in %v", r.Permits, time.Duration(r.Interval)*time.Millisecond)
}

// IsLock says whether a kind is one of lock.
func IsLock(kind redlatch.Kind) bool {
	switch kind {
	case redlatch.KindSemaphore, redlatch.KindExpirable, redlatch.KindLatch, redlatch.KindCounter, redlatch.KindRateLimiter, redlatch.KindBarrier:
		return false
	}
	return true
}

// addCounts adds what only a synchronizer has.
func (l *Lock) addCounts(info redlatch.Info) {
	if IsLock(info.Kind) {
		return
	}
	l.Count, l.Generation = &info.Count, info.Generation
	switch info.Kind {
	case redlatch.KindExpirable, redlatch.KindBarrier:
		l.Total = &info.Total
	case redlatch.KindRateLimiter:
		l.Total = &info.Total
		r := info.Rate
		l.Rate = &Rate{r.Permits, r.Interval.Milliseconds(), r.PerClient, r.KeepAlive.Milliseconds()}
		if r.PerClient {
			l.Count = nil // of this program, which takes none
		}
	}
}
