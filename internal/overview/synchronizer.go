package overview

import (
	"fmt"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
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
func (l *Lock) addCounts(info admin.Info) {
	switch info.Kind {
	case redlatch.KindSemaphore:
		l.Count = &info.Free
	case redlatch.KindExpirable:
		l.Count, l.Total = &info.Free, &info.Permits
	case redlatch.KindLatch:
		l.Count = &info.CountDowns
	case redlatch.KindCounter:
		l.Count = &info.Number
	case redlatch.KindBarrier:
		arrived := len(info.Queue)
		l.Count, l.Total, l.Generation = &arrived, &info.Parties, info.Generation
	case redlatch.KindRateLimiter:
		r := info.Rate
		l.Total, l.Rate = &r.Permits, &Rate{r.Permits, r.Interval.Milliseconds(), r.PerClient, r.KeepAlive.Milliseconds()}
		if !r.PerClient { // else it is of this program, which takes none
			l.Count = &info.Free
		}
	}
}
