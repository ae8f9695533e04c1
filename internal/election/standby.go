package election

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/internal/notify"
	"github.com/redlatch/redlatch/internal/request"
)

// A Seat is the leadership, as somebody saw it.
type Seat struct {
	Led  bool
	Term int64         // the number of the term, or of the last one; 0: the server knows of none
	TTL  time.Duration // after what time the lease of the leader ends, unless it is renewed; negative: never
}

// standBy waits until nobody has led for c.Standby. The head start of those that
// campaign at once is all that gives them precedence: the server does not know of
// them. While somebody leads, a look takes the place of the try of a waiter, and
// as seldom. While nobody leads, one look at the end suffices: a term that was in
// between has left its number.
func (all *Elections) standBy(ctx context.Context, c *Candidate) error {
	var news notify.Listener
	defer news.Stop()
	var free vacancy
	for {
		seat, err := c.Look(ctx)
		if err != nil {
			return err
		}
		pause := free.next(seat, c.Standby, time.Now())
		if pause <= 0 {
			return nil
		}
		all.Server.Listen(&news, c.Channel, nil, nil)
		if _, err := request.Pause(ctx, all.Server.Done, news.Wake(), time.Time{}, pause); err != nil {
			return err
		}
	}
}

// A vacancy is a time in which nobody leads.
type vacancy struct {
	since time.Time // when it was seen first; zero: somebody leads
	after int64     // the number of the last term
}

// next returns when to look again, or 0 if nobody has led for d.
func (v *vacancy) next(seat Seat, d time.Duration, now time.Time) time.Duration {
	switch {
	case seat.Led:
		*v = vacancy{}
		pause := request.Jittered(request.LongestPause)
		if seat.TTL >= 0 {
			pause = min(pause, seat.TTL+time.Millisecond)
		}
		return pause
	case v.since.IsZero() || v.after != seat.Term:
		*v = vacancy{now, seat.Term}
	}
	return max(0, d-now.Sub(v.since))
}
