package faults

import (
	"context"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/faultnet"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

func TestALeaseShorterThanTheWayToTheServer(t *testing.T) { together(t, impossibleLeases()...) }

func TestAWatchdogInsideAShortLease(t *testing.T) {
	together(t, telling{"is renewed", (*story).watchdogHoldInsideAShortLease})
}

// A lease that is over before the server's answer has arrived cannot be had.
// The caller is told, rather than kept trying for ever.
func impossibleLeases() []telling {
	const short, way, wait = 25 * time.Millisecond, 40 * time.Millisecond, 400 * time.Millisecond
	slow := func(s *story) *redlatch.Lock {
		s.proxy.SetRule(func(r faultnet.Request) faultnet.Action {
			if isScript(r, "lock.take", s.lock) {
				return faultnet.Delay(way)
			}
			return faultnet.Pass
		})
		return s.c.Lock(s.lock)
	}
	fails := func(s *story, call string, f func() (*redlatch.Hold, error)) {
		o := await(s.T, call, locktest.Later(func() locktest.Outcome { h, err := f(); return locktest.Outcome{Hold: h, Err: err} }))
		if o.Err == nil {
			s.T.Errorf("%s: got a hold that is over: %v", call, o.Hold.Err())
		}
	}
	return []telling{
		{"Try", func(s *story) {
			l := slow(s)
			fails(s, "Try", func() (*redlatch.Hold, error) { return locktest.With(l, redlatch.Lease(short)).TryAcquire(bg, 0) })
		}},
		{"Acquire with Wait", func(s *story) {
			l := slow(s)
			fails(s, "Acquire", func() (*redlatch.Hold, error) {
				return locktest.With(l, redlatch.Lease(short)).TryAcquire(bg, wait)
			})
		}},
		{"Acquire with a deadline", func(s *story) {
			l := slow(s)
			fails(s, "Acquire", func() (*redlatch.Hold, error) {
				ctx, cancel := context.WithTimeout(bg, wait)
				defer cancel()
				return locktest.With(l, redlatch.Lease(short)).Acquire(ctx)
			})
		}},
	}
}

// A watchdog hold inside the hold of a short lease is renewed for the watchdog's
// time. At what pace: TestAWatchdogHoldInsideAShortLeaseIsRenewedAtItsOwnPace.
func (s *story) watchdogHoldInsideAShortLease() {
	const short = 15 * time.Second // in which a busy machine enters it once more
	outer := s.acquire(bg, redlatch.Lease(short))
	inner := s.acquire(outer.Context())
	time.Sleep(short)
	s.wantHeld("after the outer lease", inner, 2)
	s.release(inner)
	_ = outer.Release(bg)
}
