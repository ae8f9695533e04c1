package faults

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/faultnet"
	"github.com/redlatch/redlatch/internal/heldport"
	"github.com/redlatch/redlatch/internal/standstill"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/observe"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

func TestOutage(t *testing.T) {
	apart(t, slices.Concat(outages(), passingTroubles(), []telling{
		{"a server that forgets the scripts is told them", (*story).serverThatForgetsTheScripts},
		{"waiters outlive the server", (*story).waitersOutliveTheServer},
	})...)
}

func TestAHolderIsToldBeforeTheLockIsGivenAway(t *testing.T) { together(t, told()...) }

func TestWithoutSubscriptionsWaitersPoll(t *testing.T) { together(t, missingSubscriptions()...) }

func (s *story) waitersOutliveTheServer() {
	waiters, waitersNotice := s.noticing(s.direct)
	holder, holderNotices := s.noticing(s.direct)
	beside, err := waiters.Lock(s.lock + "beside").Acquire(bg)
	if err != nil {
		s.T.Fatal(err)
	}
	h := s.acquireBy(holder, bg)
	first, second := locktest.Acquiring(s.of(waiters)), locktest.Acquiring(s.of(waiters))
	s.awaitSubscriber()
	s.server.Kill()
	await(s.T, "the waiters' notice of the outage", waitersNotice)
	await(s.T, "the holder's notice of the outage", holderNotices)
	select {
	case o := <-first:
		s.T.Fatalf("a waiter returned during the outage: %v, %v", o.Hold, o.Err)
	case <-h.Context().Done():
		s.T.Fatal("the holder was told of a loss while nobody could know")
	default:
	}
	s.server.Restart() // without its data
	for _, lost := range []*redlatch.Hold{h, beside} {
		await(s.T, "the end of a lost hold", lost.Context().Done())
		wantLost(s.T, lost, redlatch.LostGone)
	}
	var o locktest.Outcome
	select {
	case o = <-first:
		first = second
	case o = <-second:
	case <-time.After(locktest.Generous):
		s.T.Fatal("the waiters are stuck")
	}
	if o.Err != nil {
		s.T.Fatal(o.Err)
	}
	s.release(o.Hold)
	s.release(s.got(first))
}

// noticing returns a client that says so when a renewal of its holds has failed.
func (s *story) noticing(r driver.Redis) (*redlatch.Client, <-chan struct{}) {
	s.T.Helper()
	failed := make(chan struct{}, 1)
	c := s.client(r, redlatch.Config{})
	observe.Add(c, observe.Hooks{RenewFailed: func(observe.RenewFailedEvent) {
		select {
		case failed <- struct{}{}:
		default:
		}
	}})
	return c, failed
}

func wantLost(t *testing.T, h *redlatch.Hold, reason redlatch.LossReason) {
	t.Helper()
	var lost *redlatch.LostError
	if cause := context.Cause(h.Context()); !errors.Is(cause, redlatch.ErrLost) || !errors.As(cause, &lost) || lost.Reason != reason {
		t.Errorf("the hold ended with %v, want a loss with reason %q", cause, reason)
	}
	if err := h.Err(); !errors.Is(err, redlatch.ErrLost) {
		t.Errorf("Err: %v, want ErrLost", err)
	}
}

// A silent server, one that is gone, and one that answers without any use.
func outages() (stories []telling) {
	for name, begin := range map[string]func(s *story){
		"gone":          func(s *story) { s.server.Kill() },
		"silent":        func(s *story) { s.proxy.Blackhole(true) },
		"read-only":     func(s *story) { s.replicate(heldport.Refusing(s.T)) },
		"out of memory": func(s *story) { s.server.MustDo("CONFIG", "SET", "maxmemory", "1") },
	} {
		stories = append(stories, telling{"an outage ends every call in time/" + name, func(s *story) { s.outage(name, begin) }})
	}
	return stories
}

// replicate makes the server a replica of another.
func (s *story) replicate(primary string) {
	host, port, _ := net.SplitHostPort(primary)
	s.server.MustDo("REPLICAOF", host, port)
}

func (s *story) outage(name string, begin func(s *story)) {
	s.wrecked = true
	const patience, limit = 300 * time.Millisecond, 3 * time.Second
	c := s.client(s.place.connect(s.T, s.addr, patience), redlatch.Config{OutageTimeout: limit, CloseTimeout: time.Millisecond})
	holder := c
	if name == "out of memory" {
		holder = s.c // its releases succeed, however long a busy machine takes
	}
	var held [2]*redlatch.Hold
	for i := range held {
		if !locktest.Within(locktest.Generous, func() (ok bool) { // a busy machine may be an outage
			var err error
			held[i], err = holder.Lock(fmt.Sprint("held", i)).Acquire(bg)
			return err == nil
		}) {
			s.T.Fatal("no lock before the outage")
		}
	}
	begin(s)

	s.ends("Acquire", limit, func(ctx context.Context) error {
		_, err := c.Lock("a").Acquire(ctx)
		return err
	})
	s.endsItself("Acquire with Wait", limit/2, limit, func(ctx context.Context, d time.Duration) error {
		_, err := c.Lock("b").TryAcquire(ctx, d)
		return err
	})
	s.endsItself("Acquire with a deadline", limit/2, limit, func(ctx context.Context, d time.Duration) error {
		ctx, cancel := context.WithTimeout(ctx, d)
		defer cancel()
		_, err := c.Lock("c").Acquire(ctx)
		return err
	})
	s.ends("Try", limit, func(ctx context.Context) error {
		_, err := c.Lock("d").TryAcquire(ctx, 0)
		return err
	})
	if name != "read-only" && name != "out of memory" { // which hinder nobody who reads
		s.ends("Info", limit, func(ctx context.Context) error {
			_, err := admin.LockInfo(ctx, c.Lock("e"))
			return err
		})
	}
	if name == "out of memory" { // what is held can be released
		s.awaitCrowd()
		s.release(held[:]...)
		return
	}
	s.ends("re-entry", limit, func(ctx context.Context) error {
		_, err := c.Lock("held0").Acquire(held[0].With(ctx))
		return err
	})
	s.awaitCrowd()
	for _, h := range held { // the first one's re-entry has failed, and may still be in flight
		s.ends("Release", limit, func(ctx context.Context) error {
			err := h.Release(ctx)
			if err := h.Release(bg); !errors.Is(err, redlatch.ErrNotHeld) {
				s.T.Errorf("second Release: %v, want ErrNotHeld", err)
			}
			return err
		})
	}
	s.awaitCrowd()
}

// ends checks that f fails because of an outage, not before d is over, while other
// calls do.
func (s *story) ends(call string, d time.Duration, f func(context.Context) error) {
	s.crowd.Go(func() { s.wantUnavailable(call, s.failure(call, d, f)) })
}

// endsItself is ends for what is told to end after d. If a machine is so busy that
// no attempt has failed by then, nothing is known of an outage: it is told again,
// with a longer time.
func (s *story) endsItself(call string, d, limit time.Duration, f func(context.Context, time.Duration) error) {
	s.crowd.Go(func() {
		for ; ; d *= 2 {
			err := s.failure(call, min(d, limit), func(ctx context.Context) error { return f(ctx, d) })
			var re *driver.RunError
			if d > locktest.Generous/8 || !errors.Is(err, redlatch.ErrBusy) || errors.Is(err, redlatch.ErrUnavailable) || errors.As(err, &re) {
				s.wantUnavailable(call, err)
				return
			}
		}
	})
}

// failure returns what f fails with, and checks that it does not before d is over.
func (s *story) failure(call string, d time.Duration, f func(context.Context) error) (err error) {
	start := time.Now()
	select {
	case err = <-locktest.Later(func() error { return f(bg) }):
	case <-time.After(locktest.Generous):
		s.T.Errorf("%s does not end", call)
		return nil
	}
	if took := time.Since(start); took < d-50*time.Millisecond {
		s.T.Errorf("%s took %v, want %v", call, took, d)
	}
	return err
}

func (s *story) wantUnavailable(call string, err error) {
	var re *driver.RunError
	if !errors.Is(err, redlatch.ErrUnavailable) || !errors.As(err, &re) {
		s.T.Errorf("%s: %v, want ErrUnavailable and its cause", call, err)
	}
}

// A holder that cannot reach the server is told before Redis gives the lock
// away, however the server is lost.
func told() []telling {
	return []telling{
		{"black hole", func(s *story) { s.cutOff(func() { s.proxy.Blackhole(true) }) }},
		{"no replies", func(s *story) { s.cutOff(func() { s.proxy.OneWay(true) }) }},
		{"every connection breaks", func(s *story) {
			s.cutOff(func() {
				s.proxy.SetRule(func(r faultnet.Request) faultnet.Action {
					if isScript(r, "lock.renew", s.lock) {
						return faultnet.DropReply
					}
					return faultnet.Pass
				})
			})
		}},
		{"a lease that ends", func(s *story) {
			s.toldInTime(s.acquire(bg, redlatch.Lease(toldLease)), redlatch.LostLease)
		}},
	}
}

// toldLease is long enough for its margin, which is 250 ms or more, to cover the
// pauses of a busy machine.
const toldLease = 12 * time.Second

func (s *story) cutOff(cut func()) {
	s.c = s.client(s.driver, redlatch.Config{WatchdogTimeout: toldLease})
	h := s.acquire(bg)
	s.awaitControl()
	before := h.Expires()
	s.proxy.BreakAll() // is followed by a renewal
	if !locktest.Within(locktest.Generous, func() bool { return h.Expires().After(before) }) {
		s.T.Fatal("the hold is not renewed")
	}
	cut()
	s.toldInTime(h, redlatch.LostExpired)
}

// toldInTime checks that h ends, for a reason, before somebody else can get its
// lock. Renewals may still reach the server meanwhile, so its clock is asked all
// the time.
//
// Nobody is told anything in a process that stands still. If this one has, for
// longer than the margin allows, the test can only say so.
func (s *story) toldInTime(h *redlatch.Hold, reason redlatch.LossReason) {
	s.T.Helper()
	late := func(format string, args ...any) {
		s.T.Helper()
		standstill.Errorf(s.T, time.Now().Add(-time.Second), 80*time.Millisecond, format, args...)
	}
	var taken time.Time // by the next holder
	next := locktest.Later(func() locktest.Outcome {
		ctx, cancel := context.WithTimeout(bg, locktest.Generous)
		defer cancel()
		hold, err := s.other.Lock(s.lock).Acquire(ctx)
		taken = time.Now()
		if err == nil && h.Err() == nil { // it looks at the clock, so that no pause excuses it
			s.T.Error("the old holder believes in its hold while somebody else has the lock")
		}
		return locktest.Outcome{Hold: hold, Err: err}
	})
	told := locktest.Later(func() time.Time { <-h.Context().Done(); return time.Now() })
	var at time.Time
	for free := false; at.IsZero() && !free; {
		asked := time.Now()
		shown := s.list("HGETALL", s.lock)
		select {
		case at = <-told:
		case <-time.After(2 * time.Millisecond):
			if free = len(shown) == 0 || shown[0] != h.ID(); free {
				late("Redis had given the lock away at %v, and its holder was not told", asked)
			}
		}
	}
	o := await(s.T, "the next holder", next)
	if o.Err != nil {
		s.T.Fatal(o.Err)
	}
	if at.IsZero() {
		at = await(s.T, "the end of the hold", told)
	}
	if !at.Before(taken) {
		late("the next holder had the lock %v before the old one was told", at.Sub(taken))
	}
	wantLost(s.T, h, reason)
	if err := h.Release(bg); !errors.Is(err, redlatch.ErrLost) {
		s.T.Errorf("Release: %v, want ErrLost", err)
	}
	s.release(o.Hold)
	s.proxy.SetRule(nil)
	s.proxy.OneWay(false)
	s.proxy.Blackhole(false)
	s.proxy.BreakAll()
}

func (s *story) serverThatForgetsTheScripts() {
	for i := range everyKind {
		k := &everyKind[i]
		s.T.Run(k.name, func(t *testing.T) {
			s := s.story(t)
			holds := k.provoke(s, func() func() bool {
				s.server.MustDo("SCRIPT", "FLUSH")
				return s.inject(k, faultnet.Pass, 1)
			})
			if len(holds) > 0 {
				s.wantHeld("after it", holds[len(holds)-1], len(holds))
			}
			s.server.MustDo("SCRIPT", "FLUSH")
			s.release(holds...)
			s.wantFree("in the end")
		})
	}
}

// The reply that is lost is the one to the whole script, sent because the
// server did not know it.
func (s *story) lostReplyToAnUnknownScript() {
	for i := range everyKind {
		k := everyKind[i]
		if k.second {
			continue // the server knows the script by then
		}
		only := k.only
		k.only = func(r faultnet.Request) bool { return r.Args[0] == "EVAL" && (only == nil || only(r)) }
		s.T.Run(k.name, func(t *testing.T) {
			s := s.story(t)
			var fired func() bool
			holds := k.provoke(s, func() func() bool {
				s.server.MustDo("SCRIPT", "FLUSH")
				fired = s.inject(&k, faultnet.DropReply, 1)
				return fired
			})
			if !fired() {
				s.T.Fatal("no such request was sent")
			}
			if len(holds) > 0 {
				s.wantHeld("after it", holds[len(holds)-1], len(holds))
			}
			s.release(holds...)
			s.wantFree("in the end")
		})
	}
}

// Errors that pass: no hold is lost by them, and callers wait for their end.
func passingTroubles() (stories []telling) {
	for name, begin := range map[string]func(s *story) (end func()){
		"read-only": func(s *story) func() {
			s.replicate(heldport.Refusing(s.T))
			return func() { s.server.MustDo("REPLICAOF", "NO", "ONE") }
		},
		"out of memory": func(s *story) func() {
			s.server.MustDo("CONFIG", "SET", "maxmemory", "1")
			return func() { s.server.MustDo("CONFIG", "SET", "maxmemory", "0") }
		},
		"busy with a script": func(s *story) func() {
			s.server.MustDo("CONFIG", "SET", "lua-time-limit", "20")
			c, err := s.server.Dial(bg)
			if err != nil {
				s.T.Fatal(err)
			}
			s.T.Cleanup(func() { _ = c.Close() })
			fmt.Fprintf(c, "EVAL %q 0\r\n", "while true do end")
			if !locktest.Within(locktest.Generous, func() bool {
				_, err := s.server.Do("GET", "x")
				var re testserver.ReplyError
				return errors.As(err, &re)
			}) {
				s.T.Fatal("the server is not busy")
			}
			return func() { s.server.MustDo("SCRIPT", "KILL") }
		},
		"connections killed": func(s *story) func() {
			return func() {
				for _, kind := range []string{"normal", "pubsub"} {
					s.server.MustDo("CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes")
				}
			}
		},
		"paused": func(s *story) func() {
			s.server.Pause()
			return s.server.Resume
		},
	} {
		stories = append(stories, telling{"passing trouble costs nothing/" + name, func(s *story) { s.passingTrouble(begin) }})
	}
	return stories
}

func (s *story) passingTrouble(begin func(s *story) (end func())) {
	c, failed := s.noticing(s.driver)
	s.c = c
	h, err := c.Lock(s.lock + "held").Acquire(bg)
	if err != nil {
		s.T.Fatal(err)
	}
	s.awaitControl()
	acquired := h.Expires()
	end := begin(s)
	got := locktest.Acquiring(c.Lock(s.lock))
	s.proxy.BreakAll() // is followed by a renewal
	if !locktest.Within(locktest.Generous, func() bool { return len(failed) > 0 || h.Expires().After(acquired) }) {
		s.T.Error("no renewal has been tried")
	}
	if err := h.Err(); err != nil {
		s.T.Errorf("the hold was lost: %v", err)
	}
	end()
	next := s.got(got)
	s.awaitControl() // again
	before := h.Expires()
	s.proxy.BreakAll() // is followed by a renewal
	if !locktest.Within(locktest.Generous, func() bool { return h.Err() != nil || h.Expires().After(before) }) || h.Err() != nil {
		s.T.Errorf("the hold is not kept any more: %v", h.Err())
	}
	s.release(h, next)
}

// Without messages waiters poll, and nobody gets an error.
func missingSubscriptions() (stories []telling) {
	for name, loss := range map[string]faultnet.Action{"connection closed": faultnet.DropReply, "silence": faultnet.StallReply} {
		stories = append(stories, telling{name, func(s *story) { s.polls(loss) }})
	}
	return stories
}

func (s *story) polls(loss faultnet.Action) {
	var tried atomic.Bool
	s.proxy.SetRule(func(r faultnet.Request) faultnet.Action {
		if r.Args[0] == "SUBSCRIBE" {
			if slices.ContainsFunc(r.Args[1:], func(c string) bool { return strings.Contains(c, s.lock) }) {
				tried.Store(true)
			}
			return loss
		}
		return faultnet.Pass
	})
	s.proxy.BreakAll()
	h := s.acquireBy(s.other, bg)
	got := locktest.Acquiring(s.of(s.c))
	if !locktest.Within(locktest.Generous, tried.Load) {
		s.T.Fatal("the waiter did not subscribe")
	}
	s.release(h)
	s.release(s.got(got))
}
