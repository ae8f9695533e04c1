package redlatch_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/faultnet"
	"github.com/redlatch/redlatch/internal/testserver"
)

func waitersOutliveTheServer(t *testing.T, a adapter) {
	ar := newArena(t, a)
	waiters, waitersNotice := ar.noticing(redlatch.Config{})
	holder, holderNotices := ar.noticing(redlatch.Config{})
	if _, err := waiters.Lock("beside").Acquire(bg); err != nil {
		t.Fatal(err)
	}
	h, err := holder.Lock("orders").Acquire(bg)
	if err != nil {
		t.Fatal(err)
	}
	first, second := acquiring(waiters.Lock("orders")), acquiring(waiters.Lock("orders"))
	if !within(generous, func() bool { return len(ar.list("PUBSUB", "CHANNELS", "*orders*")) > 0 }) {
		t.Fatal("nobody waits")
	}
	ar.server.Kill()
	await(t, "the waiters' notice of the outage", waitersNotice)
	await(t, "the holder's notice of the outage", holderNotices)
	select {
	case o := <-first:
		t.Fatalf("a waiter returned during the outage: %v, %v", o.hold, o.err)
	case <-h.Context().Done():
		t.Fatal("the holder was told of a loss while nobody could know")
	default:
	}
	ar.server.Restart() // without its data
	back := time.Now()
	await(t, "the end of the lost hold", h.Context().Done())
	wantLost(t, h, redlatch.LostGone)
	for range 2 {
		var o outcome
		select {
		case o = <-first:
		case o = <-second:
		case <-time.After(generous):
			t.Fatal("the waiters are stuck")
		}
		if o.err != nil {
			t.Fatal(o.err)
		}
		if waited := o.at.Sub(back); waited > soon {
			t.Errorf("a waiter got the free lock after %v", waited)
		}
		if err := o.hold.Release(bg); err != nil {
			t.Fatal(err)
		}
	}
	ar.end()
}

// noticing returns a client that says so when a renewal of its holds has failed.
func (ar *arena) noticing(cfg redlatch.Config) (*redlatch.Client, <-chan struct{}) {
	ar.Helper()
	failed := make(chan struct{}, 1)
	cfg.Events.RenewFailed = func(redlatch.RenewFailedEvent) {
		select {
		case failed <- struct{}{}:
		default:
		}
	}
	return ar.client(ar.direct, cfg), failed
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
func anOutageEndsEveryCallInTime(t *testing.T, a adapter) {
	outages := []struct {
		name  string
		begin func(s *story)
	}{
		{"gone", func(s *story) { s.server.Kill() }},
		{"silent", func(s *story) { s.proxy.Blackhole(true) }},
		{"read-only", func(s *story) { s.server.MustDo("REPLICAOF", "127.0.0.1", "1") }},
		{"out of memory", func(s *story) { s.server.MustDo("CONFIG", "SET", "maxmemory", "1") }},
	}
	const patience = 2 * time.Second // half of it is enough for an attempt to fail, on a busy machine too
	var tests []subtest
	for _, x := range outages {
		tests = append(tests, subtest{x.name, func(t *testing.T) {
			ar := newArena(t, a)
			s := &story{T: t, arena: ar}
			s.proxy, s.driver = ar.through()
			s.c = ar.client(s.driver, redlatch.Config{OutageTimeout: patience, CloseTimeout: time.Millisecond})
			var held [2]*redlatch.Hold
			for i := range held {
				var err error
				if held[i], err = s.c.Lock(fmt.Sprint("held", i)).Acquire(bg); err != nil {
					t.Fatal(err)
				}
			}
			x.begin(s)

			s.ends("Acquire", patience, func(ctx context.Context) error {
				_, err := s.c.Lock("a").Acquire(ctx)
				return err
			})
			s.ends("Acquire with Wait", patience/2, func(ctx context.Context) error {
				_, err := s.c.Lock("b").Acquire(ctx, redlatch.Wait(patience/2))
				return err
			})
			s.ends("Acquire with a deadline", patience/2, func(ctx context.Context) error {
				ctx, cancel := context.WithTimeout(ctx, patience/2)
				defer cancel()
				_, err := s.c.Lock("c").Acquire(ctx)
				return err
			})
			s.ends("Try", patience, func(ctx context.Context) error {
				_, err := s.c.Lock("d").Try(ctx)
				return err
			})
			if x.name == "out of memory" { // what is held can be released
				s.release(held[:]...)
				return
			}
			s.ends("re-entry", patience, func(ctx context.Context) error {
				_, err := s.c.Lock("held0").Acquire(held[0].With(ctx))
				return err
			})
			if x.name != "read-only" {
				s.ends("Info", patience, func(ctx context.Context) error {
					_, err := s.c.Lock("e").Info(ctx)
					return err
				})
			}
			for _, h := range held { // the first one's re-entry has failed, and may still be under way
				s.ends("Release", patience, h.Release)
				if err := h.Release(bg); !errors.Is(err, redlatch.ErrNotHeld) {
					t.Errorf("second Release: %v, want ErrNotHeld", err)
				}
			}
		}})
	}
	concurrently(t, len(tests), tests)
}

// ends checks that f fails because of an outage, after about d.
func (s *story) ends(call string, d time.Duration, f func(context.Context) error) {
	s.T.Helper()
	start := time.Now()
	err := await(s.T, call, later(func() error { return f(bg) }))
	took := time.Since(start)
	// An attempt that began in time may end later: by an attempt's time-out, 3 s.
	if took < d-50*time.Millisecond || took > d+6*time.Second {
		s.T.Errorf("%s took %v, want about %v", call, took, d)
	}
	var re *redlatch.RunError
	if !errors.Is(err, redlatch.ErrUnavailable) || !errors.As(err, &re) {
		s.T.Errorf("%s: %v, want ErrUnavailable and its cause", call, err)
	}
}

// A holder that cannot reach the server is told before Redis gives the lock
// away, however the server is lost.
func aHolderIsToldBeforeTheLockIsGivenAway(t *testing.T, a adapter) {
	ar := newArena(t, a)
	ar.tell([]telling{
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
			s.c = s.client(s.driver, redlatch.Config{})
			s.toldInTime(s.acquire(bg, redlatch.Lease(toldLease(s))))
		}},
	})
	ar.end()
}

// toldLease is long enough for its margin, which is 170 ms or more, to cover the
// pauses of a busy machine.
func toldLease(s *story) time.Duration { return max(s.short, 8*time.Second) }

func (s *story) cutOff(cut func()) {
	s.c = s.client(s.driver, redlatch.Config{WatchdogTimeout: toldLease(s)})
	h := s.acquire(bg)
	before := h.Expires()
	if !within(generous, func() bool { return h.Expires().After(before) }) {
		s.T.Fatal("the hold is not renewed")
	}
	cut()
	s.toldInTime(h)
}

// toldInTime checks that h ends before somebody else can get its lock. Renewals
// may still reach the server meanwhile, so its clock is asked all the time.
//
// Nobody is told anything in a process that stands still. If this one has, for
// longer than the margin allows, the test can only say so.
func (s *story) toldInTime(h *redlatch.Hold) {
	s.T.Helper()
	lately := standstill(s.T)
	late := func(format string, args ...any) {
		s.T.Helper()
		if still := lately(); still > 80*time.Millisecond {
			s.T.Logf("NOT PROVEN, because this process stood still for %v: %s", still, fmt.Sprintf(format, args...))
			return
		}
		s.T.Errorf(format, args...)
	}
	next := later(func() outcome {
		ctx, cancel := context.WithTimeout(bg, generous)
		defer cancel()
		hold, err := s.other.Lock(s.lock).Acquire(ctx)
		at := time.Now()
		if err == nil && h.Err() == nil { // it looks at the clock, so that no pause excuses it
			s.T.Error("the old holder believes in its hold while somebody else has the lock")
		}
		return outcome{hold, err, at}
	})
	told := later(func() time.Time { <-h.Context().Done(); return time.Now() })
	var at time.Time
	for free := false; at.IsZero() && !free; {
		asked := time.Now()
		shown := s.list("HGETALL", s.lock)
		select {
		case at = <-told:
		case <-time.After(2 * time.Millisecond):
			if free = len(shown) == 0 || shown[0] != h.Owner(); free {
				late("Redis had given the lock away at %v, and its holder was not told", asked)
			}
		}
	}
	o := await(s.T, "the next holder", next)
	if o.err != nil {
		s.T.Fatal(o.err)
	}
	if at.IsZero() {
		at = await(s.T, "the end of the hold", told)
	}
	if !at.Before(o.at) {
		late("the next holder had the lock %v before the old one was told", at.Sub(o.at))
	}
	wantLost(s.T, h, redlatch.LostExpired)
	if err := h.Release(bg); !errors.Is(err, redlatch.ErrLost) {
		s.T.Errorf("Release: %v, want ErrLost", err)
	}
	s.release(o.hold)
	s.proxy.SetRule(nil)
	s.proxy.OneWay(false)
	s.proxy.Blackhole(false)
	s.proxy.BreakAll()
}

// standstill watches until the end of the test; lately returns for how long at
// most nothing has moved in this process within the last second.
func standstill(t *testing.T) (lately func() time.Duration) {
	t.Helper()
	const beat = 5 * time.Millisecond
	type gap struct {
		end  time.Time
		long time.Duration
	}
	var mu sync.Mutex
	var gaps []gap
	last := time.Now()
	note := func() {
		now := time.Now()
		gaps = append(gaps, gap{now, now.Sub(last) - beat})
		gaps = slices.DeleteFunc(gaps, func(g gap) bool { return now.Sub(g.end) > time.Second })
		last = now
	}
	ctx, cancel := context.WithCancel(bg)
	t.Cleanup(cancel)
	go func() {
		for ctx.Err() == nil {
			time.Sleep(beat)
			mu.Lock()
			note()
			mu.Unlock()
		}
	}()
	return func() time.Duration {
		mu.Lock()
		defer mu.Unlock()
		note() // it may stand still now
		return slices.MaxFunc(gaps, func(a, b gap) int { return cmp.Compare(a.long, b.long) }).long
	}
}

func aServerThatForgetsTheScriptsIsToldThem(t *testing.T, a adapter) {
	ar := newArena(t, a)
	for i := range everyKind {
		k := &everyKind[i]
		ar.tell([]telling{{k.name, func(s *story) {
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
		}}})
	}
	ar.close()
}

// The reply that is lost is the one to the whole script, sent because the
// server did not know it.
func aLostReplyToAnUnknownScriptChangesNothing(t *testing.T, a adapter) {
	ar := newArena(t, a)
	for i := range everyKind {
		k := everyKind[i]
		if k.second {
			continue // the server knows the script by then
		}
		only := k.only
		k.only = func(r faultnet.Request) bool { return r.Args[0] == "EVAL" && (only == nil || only(r)) }
		ar.tell([]telling{{k.name, func(s *story) {
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
		}}})
	}
	ar.close()
}

// Errors that pass: no hold is lost by them, and callers wait for their end.
func passingTroubleCostsNothing(t *testing.T, a adapter) {
	troubles := []struct {
		name  string
		begin func(t *testing.T, s *testserver.Server) (end func())
	}{
		{"read-only", func(_ *testing.T, s *testserver.Server) func() {
			s.MustDo("REPLICAOF", "127.0.0.1", "1")
			return func() { s.MustDo("REPLICAOF", "NO", "ONE") }
		}},
		{"out of memory", func(_ *testing.T, s *testserver.Server) func() {
			s.MustDo("CONFIG", "SET", "maxmemory", "1")
			return func() { s.MustDo("CONFIG", "SET", "maxmemory", "0") }
		}},
		{"busy with a script", func(t *testing.T, s *testserver.Server) func() {
			s.MustDo("CONFIG", "SET", "busy-reply-threshold", "20")
			c, err := s.Dial(bg)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() })
			fmt.Fprintf(c, "EVAL %q 0\r\n", "while true do end")
			if !within(generous, func() bool {
				_, err := s.Do("GET", "x")
				var re testserver.ReplyError
				return errors.As(err, &re)
			}) {
				t.Fatal("the server is not busy")
			}
			return func() { s.MustDo("SCRIPT", "KILL") }
		}},
		{"connections killed", func(_ *testing.T, s *testserver.Server) func() {
			return func() {
				for _, kind := range []string{"normal", "pubsub"} {
					s.MustDo("CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes")
				}
			}
		}},
		{"paused", func(_ *testing.T, s *testserver.Server) func() {
			s.Pause()
			return s.Resume
		}},
	}
	var tests []subtest
	for _, x := range troubles {
		tests = append(tests, subtest{x.name, func(t *testing.T) {
			ar := newArena(t, a)
			// Renewed after 3 s, and kept for another 5 without an answer.
			c, failed := ar.noticing(redlatch.Config{WatchdogTimeout: max(ar.short, 9*time.Second)})
			h, err := c.Lock("held").Acquire(bg)
			if err != nil {
				t.Fatal(err)
			}
			acquired := h.Expires()
			end := x.begin(t, ar.server)
			got := acquiring(c.Lock("orders"))
			if !within(generous, func() bool { return len(failed) > 0 || h.Expires().After(acquired) }) {
				t.Error("no renewal has been tried")
			}
			if err := h.Err(); err != nil {
				t.Errorf("the hold was lost: %v", err)
			}
			end()
			o := await(t, "the acquisition", got)
			if o.err != nil {
				t.Fatal(o.err)
			}
			before := h.Expires()
			if !within(generous, func() bool { return h.Err() != nil || h.Expires().After(before) }) || h.Err() != nil {
				t.Errorf("the hold is not kept any more: %v", h.Err())
			}
			for _, h := range []*redlatch.Hold{h, o.hold} {
				if err := h.Release(bg); err != nil {
					t.Errorf("Release: %v", err)
				}
			}
			if keys := ar.list("KEYS", "*"); len(keys) > 0 {
				t.Errorf("left behind: %q", keys)
			}
			ar.close()
		}})
	}
	concurrently(t, len(tests), tests)
}

// Without messages waiters poll, and nobody gets an error.
func withoutSubscriptionsWaitersPoll(t *testing.T, a adapter) {
	ar := newArena(t, a)
	losses := map[string]faultnet.Action{"connection closed": faultnet.DropReply, "silence": faultnet.StallReply}
	var stories []telling
	for name, loss := range losses {
		stories = append(stories, telling{name, func(s *story) {
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
			got := acquiring(s.c.Lock(s.lock))
			if !within(generous, tried.Load) {
				s.T.Fatal("the waiter did not subscribe")
			}
			s.release(h)
			released := time.Now()
			o := await(s.T, "the waiter", got)
			if o.err != nil {
				s.T.Fatal(o.err)
			}
			if waited := o.at.Sub(released); waited > soon {
				s.T.Errorf("the waiter found the lock free after %v, want it to look every 2 s", waited)
			}
			s.release(o.hold)
		}})
	}
	ar.tell(stories)
}
