package redlatch_test

import (
	"context"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/faultnet"
)

// A lease that is over before the server's answer has arrived cannot be had.
// The caller is told, rather than kept trying for ever.
func aLeaseShorterThanTheWayToTheServer(t *testing.T, a adapter) {
	const lease, way, patience = 25 * time.Millisecond, 40 * time.Millisecond, 400 * time.Millisecond
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
		start := time.Now()
		o := await(s.T, call, later(func() outcome { h, err := f(); return outcome{h, err, time.Now()} }))
		if o.err == nil {
			s.T.Errorf("%s: got a hold that is over: %v", call, o.hold.Err())
		}
		if took := o.at.Sub(start); took > soon {
			s.T.Errorf("%s took %v", call, took)
		}
	}
	ar := newArena(t, a)
	ar.tell([]telling{
		{"Try", func(s *story) {
			l := slow(s)
			fails(s, "Try", func() (*redlatch.Hold, error) { return l.Try(bg, redlatch.Lease(lease)) })
		}},
		{"Acquire with Wait", func(s *story) {
			l := slow(s)
			fails(s, "Acquire", func() (*redlatch.Hold, error) {
				return l.Acquire(bg, redlatch.Lease(lease), redlatch.Wait(patience))
			})
		}},
		{"Acquire with a deadline", func(s *story) {
			l := slow(s)
			fails(s, "Acquire", func() (*redlatch.Hold, error) {
				ctx, cancel := context.WithTimeout(bg, patience)
				defer cancel()
				return l.Acquire(ctx, redlatch.Lease(lease))
			})
		}},
	})
	ar.end()
}

// A watchdog hold inside the hold of a short lease is renewed for the
// watchdog's time, at the watchdog's pace.
func aWatchdogHoldInsideAShortLease(t *testing.T, a adapter) {
	ar := newArena(t, a)
	ar.tell([]telling{{"once", func(s *story) {
		outer := s.acquire(bg, redlatch.Lease(500*time.Millisecond))
		inner := s.acquire(outer.Context())
		s.proxy.Record(true)
		for end := time.Now().Add(2 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			if err := inner.Err(); err != nil {
				s.T.Fatal(err)
			}
		}
		renewals := 0
		for _, r := range s.proxy.Requests() {
			if isScript(r, "lock.renew", s.lock) {
				renewals++
			}
		}
		if renewals > 1 {
			s.T.Errorf("%d renewals in two seconds, want one each ten", renewals)
		}
		s.wantHeld("after the outer lease", inner, 2)
		s.release(inner)
		_ = outer.Release(bg)
	}}})
	ar.end()
}
