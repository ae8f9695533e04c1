package faults

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/faultnet"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

func TestClose(t *testing.T) {
	together(t, append(closedMeanwhile(), telling{"under a live hold", (*story).closeUnderALiveHold})...)
}

// Close ends what a live hold has needed; its lock stays, for its TTL.
func (s *story) closeUnderALiveHold() {
	first := s.acquireBy(s.other, bg)
	got := locktest.Acquiring(s.c.Lock(s.lock))
	s.awaitSubscriber() // the line's subscription is there from now on
	s.release(first)
	h := s.got(got)
	if err := s.c.Close(); err != nil {
		s.T.Error(err)
	}
	await(s.T, "the end of the hold", h.Context().Done())
	ttl := s.ttl()
	if cause := context.Cause(h.Context()); !errors.Is(cause, redlatch.ErrClosed) || !errors.Is(h.Err(), redlatch.ErrClosed) {
		s.T.Errorf("the hold ended with %v and %v, want ErrClosed", cause, h.Err())
	}
	if !locktest.Within(locktest.Generous, func() bool { return !s.subscribed() }) {
		s.T.Error("the subscription is still there")
	}
	if left := s.ttl(); left <= 0 || left > ttl {
		s.T.Errorf("the lock has a TTL of %v, want it left as it was, %v", left, ttl)
	}
	s.server.MustDo("DEL", s.lock)
}

// An acquisition that meets Close either fails or has its hold ended by it: a
// hold that nobody ends would be believed for ever.
func closedMeanwhile() (stories []telling) {
	for _, slow := range []bool{true, false} {
		for i := range 10 {
			stories = append(stories, telling{fmt.Sprintf("while a lock is being acquired/slow %t/%d", slow, i), func(s *story) {
				if slow {
					s.inject(&requestKind{script: "lock.take"}, faultnet.Delay(50*time.Millisecond), 1)
				}
				got := locktest.Later(func() locktest.Outcome {
					h, err := s.c.Lock(s.lock).Acquire(bg)
					return locktest.Outcome{Hold: h, Err: err}
				})
				time.Sleep(time.Duration(i) * 200 * time.Microsecond) // anywhere on the way
				closed := locktest.Later(s.c.Close)
				o := await(s.T, "the acquisition", got)
				if err := await(s.T, "the end of Close", closed); err != nil {
					s.T.Errorf("Close: %v", err)
				}
				if o.Err != nil {
					if !errors.Is(o.Err, redlatch.ErrClosed) {
						s.T.Errorf("Acquire: %v, want ErrClosed", o.Err)
					}
					return
				}
				await(s.T, "the end of the hold of a closed client", o.Hold.Context().Done())
				if err := o.Hold.Err(); !errors.Is(err, redlatch.ErrClosed) {
					s.T.Errorf("Err: %v, want ErrClosed", err)
				}
				s.server.MustDo("DEL", s.lock)
			}})
		}
	}
	return stories
}
