package redlatch_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
)

// Redisson issues 3474, 5586, 4211 and 6702: questions about replicas cost more
// than locks.
func TestAPrimaryIsAskedForItsReplicasOnce(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c, d := w.acking(redlatch.Config{}, 1, 1)
		for range 50 {
			w.release(w.acquire(c.Lock("name"), bg))
			time.Sleep(time.Minute)
		}
		if n := d.questions(); n != 1 {
			t.Errorf("asked %d times", n)
		}
		d.breakNow()
		w.release(w.acquire(c.Lock("name"), bg))
		w.release(w.acquire(c.Lock("name"), bg))
		if n := d.questions(); n != 1 {
			t.Errorf("asked %d times after a break", n)
		}
	})
}

func TestAPrimaryWithoutReplicasIsAskedOnceASecond(t *testing.T) {
	inFakeTime(t, func(w *world) {
		d := &slowAnswer{} // all of a crowd come before it
		d.follow(0, 0)
		d.Redis = w.driver()
		c := w.clientWith(d, redlatch.Config{Acks: redlatch.AcksAny})
		w.release(w.acquire(c.Lock("name"), bg))
		d.questions()
		start := time.Now()
		for time.Since(start) < time.Minute {
			var crowd sync.WaitGroup
			for i := range 5 {
				crowd.Go(func() {
					h, err := c.Lock(fmt.Sprint(i)).Acquire(bg)
					if err == nil {
						err = h.Release(bg)
					}
					if err != nil {
						t.Error(err)
					}
				})
			}
			crowd.Wait()
			time.Sleep(time.Second)
		}
		if n := d.questions(); n < 30 || n > 61 {
			t.Errorf("asked %d times in a minute, of which each second 5 acquire something", n)
		}
		if got := d.takes(); len(got) > 0 {
			t.Errorf("waited for %d acknowledgements of nobody", len(got))
		}
		d.follow(1, 1)
		time.Sleep(10 * time.Second)
		w.release(w.acquire(c.Lock("name"), bg))
		if got := d.takes(); len(got) != 1 {
			t.Errorf("waited for %v of a replica that has come", got)
		}
	})
}

// laned is an acker whose server is two nodes.
type laned struct{ acker }

func (d *laned) Lane(key string) string { return key[:3] }

// A cluster's primaries have each replicas of their own.
func TestEveryNodeOfAClusterIsAskedAbout(t *testing.T) {
	inFakeTime(t, func(w *world) {
		d := &laned{}
		d.Redis, d.cluster = w.driver(), true
		d.follow(1, 1)
		c := w.clientWith(d, redlatch.Config{})
		for range 3 {
			for _, name := range []string{"{a}1", "{a}2", "{b}"} {
				w.release(w.acquire(c.Lock(name), bg))
			}
		}
		if n := d.questions(); n != 2 {
			t.Errorf("asked %d times about 2 nodes", n)
		}
	})
}

// batching is an acker whose driver sends several requests together.
type batching struct {
	acker
	largest atomic.Int64
}

func (d *batching) Traits() driver.Traits {
	t := d.acker.Traits()
	t.ContextValues = false
	return t
}

func (d *batching) RunBatch(requests []*driver.Request) {
	d.largest.Store(max(d.largest.Load(), int64(len(requests))))
	for _, r := range requests {
		r.Reply, r.Err = d.Run(bg, r.Script, r.Keys, r.Args)
	}
}

// Requests go out together again as soon as there is nobody to wait for.
func TestWithoutReplicasRequestsGoOutTogether(t *testing.T) {
	for replicas := range 2 {
		inFakeTime(t, func(w *world) {
			d := &batching{}
			d.follow(replicas, 1)
			d.Redis = w.driver()
			d.keyed = func(_ string, _, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
				time.Sleep(time.Millisecond)
				return next()
			}
			c := w.clientWith(d, redlatch.Config{Acks: redlatch.AcksAny})
			w.release(w.acquire(c.Lock("name"), bg))
			ctx, cancel := context.WithTimeout(bg, time.Minute)
			defer cancel()
			var crowd sync.WaitGroup
			holds := make([]*redlatch.Hold, 40)
			for i := range holds {
				crowd.Go(func() { holds[i], _ = c.Lock(fmt.Sprint(i)).Acquire(ctx) })
			}
			crowd.Wait()
			if together := d.largest.Load() > 1; together != (replicas == 0) {
				t.Errorf("with %d replicas up to %d requests go out together", replicas, d.largest.Load())
			}
			for _, h := range holds {
				w.release(h)
			}
		})
	}
}

func serverError(text string) error { return driver.ServerError(text, errors.New(text)) }

// Redisson issues 5614 and 6223: where a managed server has no WAIT, or does not
// let anybody see its replicas, nothing worked.
func TestAServerWithoutWaitIsUsedSilently(t *testing.T) {
	for name, set := range map[string]func(d *acker){
		"no permission for ROLE": func(d *acker) { d.fail(serverError("NOPERM this user has no permissions to run the 'role' command")) },
		"no ROLE":                func(d *acker) { d.fail(serverError("ERR unknown command 'ROLE', with args beginning with: ")) },
		"no WAIT":                func(d *acker) { d.follow(1, -1) },
	} {
		for _, policy := range []redlatch.Acks{redlatch.AcksAuto, redlatch.AcksAny, redlatch.AcksBestEffort} {
			t.Run(fmt.Sprint(name, policy), func(t *testing.T) {
				inFakeTime(t, func(w *world) {
					d := &acker{}
					d.follow(1, 1)
					set(d)
					c := w.ackingWith(redlatch.Config{
						Acks:   policy,
						Events: redlatch.Events{NotAcknowledged: func(e redlatch.NotAcknowledgedEvent) { t.Errorf("%+v", e) }},
					}, d)
					start := time.Now()
					for _, x := range takings() {
						if strings.HasPrefix(x.name, "multi") || x.name == "red" {
							continue // they need more clients
						}
						w.server.FlushAll()
						if x.setUp != nil {
							x.setUp(w, c)
						}
						release, err := x.take([]*redlatch.Client{c}, bg, false)
						w.no(err)
						w.no(release(bg))
					}
					if took := time.Since(start); took > 100*time.Millisecond {
						t.Errorf("took %v", took)
					}
					if asked := d.questions() + len(d.takes()); asked > 2 {
						t.Errorf("asked %d times", asked)
					}
					h := w.acquire(c.Lock("kept"), bg)
					time.Sleep(time.Minute)
					w.release(h)
				})
			})
		}
	}
}

func TestANumberOfReplicasIsRequiredOfAServerWithoutWaitToo(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c, _ := w.acking(redlatch.Config{Acks: 1}, 1, -1)
		start := time.Now()
		_, err := c.Lock("name").Acquire(bg)
		w.wantAck(err, "name", 0, 1)
		if redlatch.IsRetryable(err) || !strings.Contains(err.Error(), "WAIT") || time.Since(start) > time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		settled()
		w.wantLocksGone()
	})
}

// Whether there are replicas has to be known; a server that does not answer says
// nothing about that.
func TestAServerThatDoesNotSayIsAnOutage(t *testing.T) {
	broken := errors.New("connection reset")
	for _, policy := range []redlatch.Acks{redlatch.AcksAny, redlatch.AcksBestEffort} {
		inFakeTime(t, func(w *world) {
			c, d := w.acking(redlatch.Config{Acks: policy}, 1, 1)
			d.fail(broken)
			_, err := c.Lock("name").Acquire(bg)
			w.wantErr(err, redlatch.ErrUnavailable, broken)
			if errors.Is(err, redlatch.ErrNotAcknowledged) {
				t.Errorf("got %v", err)
			}
			time.AfterFunc(3*time.Second, func() { d.fail(nil) })
			h := w.acquire(c.Lock("name"), bg)
			d.fail(serverError("NOAUTH Authentication required."))
			d.breakNow()
			_, err = c.Lock("other").Acquire(bg)
			w.wantErr(err, d.ask)
			d.fail(nil)
			time.Sleep(time.Minute)
			w.release(h)
		})
	}
}

// A primary that is cut off from its replicas, and then from its clients, has not
// lost its replicas: they are about to have another one.
func TestAPrimaryThatDoesNotAnswerAnyMoreHasNotLostItsReplicas(t *testing.T) {
	for _, failure := range []error{errors.New("connection reset"), serverError("READONLY You can't write against a read only replica.")} {
		inFakeTime(t, func(w *world) {
			c, d := w.acking(redlatch.Config{Acks: redlatch.AcksAny}, 1, 1)
			w.release(w.acquire(c.Lock("name"), bg))
			d.answer(func(string, []string, int) (int, error) {
				d.fail(failure)
				return 0, nil
			})
			_, err := c.Lock("name").Acquire(bg)
			w.wantAck(err, "name", 0, 1)
			d.fail(nil)
			d.follow(0, 0)
			w.release(w.acquire(c.Lock("name"), bg)) // they have gone by now
		})
	}
}

// Replicas go and come back: while there are none nobody waits for them.
func TestReplicasThatHaveGoneAreNotWaitedFor(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c, d := w.acking(redlatch.Config{Acks: redlatch.AcksAny}, 1, 1)
		l := c.Lock("name")
		took := func() time.Duration {
			start := time.Now()
			w.release(w.acquire(l, bg))
			return time.Since(start)
		}
		took()
		d.follow(0, 0)
		if first, next := took(), took(); first != time.Second || next > time.Millisecond {
			t.Errorf("took %v, then %v", first, next)
		}
		d.follow(1, 0)
		if now := took(); now > time.Millisecond {
			t.Errorf("took %v", now)
		}
		time.Sleep(11 * time.Second)
		_, err := l.Acquire(bg)
		w.wantAck(err, "name", 0, 1)
		d.follow(2, 1)
		took()
	})
}

// After a break there may be another primary, of which the answer of the last one
// says nothing.
func TestWhatWasLearnedOfTheLastPrimaryDoesNotCount(t *testing.T) {
	inFakeTime(t, func(w *world) {
		d := &slowAnswer{}
		d.follow(0, 0)
		d.Redis = w.driver()
		c := w.clientWith(d, redlatch.Config{Acks: redlatch.AcksAny})
		asking := acquiring(c.Lock("before"))
		synctest.Wait()
		d.follow(1, 0)
		d.breakNow()
		w.release((<-asking).hold)
		_, err := c.Lock("after").Acquire(bg)
		w.wantAck(err, "after", 0, 1)
	})
}

// slowAnswer is an acker that takes a second to say how many replicas there were.
type slowAnswer struct{ acker }

func (d *slowAnswer) Replicas(ctx context.Context, key string) (int, error) {
	n, err := d.acker.Replicas(ctx, key)
	time.Sleep(time.Second)
	return n, err
}

// Who gives little time learns in time how it ended.
func TestReplicasHaveHalfOfTheTimeThatThereIs(t *testing.T) {
	for _, policy := range []redlatch.Acks{redlatch.AcksBestEffort, redlatch.AcksAny, 1} {
		inFakeTime(t, func(w *world) {
			c, d := w.acking(redlatch.Config{Acks: policy, AckTimeout: 5 * time.Second}, 1, 0)
			try := func(want time.Duration, ctx context.Context, opts ...redlatch.Option) {
				t.Helper()
				settled() // or the last one may not have been given back
				start := time.Now()
				h, err := c.Lock("name").Acquire(ctx, opts...)
				if policy == redlatch.AcksBestEffort {
					w.no(err)
					w.release(h)
				} else {
					w.wantAck(err, "name", 0, 1)
				}
				d.mu.Lock()
				limit := d.limits[len(d.limits)-1]
				d.mu.Unlock()
				if took := time.Since(start); took != want || limit != want {
					t.Errorf("took %v, %v for replicas, want %v", took, limit, want)
				}
			}
			try(1500*time.Millisecond, bg)
			try(200*time.Millisecond, bg, redlatch.Wait(400*time.Millisecond))
			try(1500*time.Millisecond, bg, redlatch.Wait(time.Hour))
			try(50*time.Millisecond, bg, redlatch.Lease(time.Second))
			ctx, cancel := context.WithTimeout(bg, 301*time.Millisecond) // settled takes one of them
			defer cancel()
			try(150*time.Millisecond, ctx, redlatch.Wait(400*time.Millisecond))
		})
	}
}

func TestNewRefusesAcksThatItCannotAskFor(t *testing.T) {
	inFakeTime(t, func(w *world) {
		plain := &tap{Redis: w.driver()} // no Acker
		asks := &acker{}
		asks.Redis = plain.Redis
		for _, x := range []struct {
			driver driver.Redis
			cfg    redlatch.Config
			says   string // empty: it is fine
		}{
			{asks, redlatch.Config{Acks: -4}, "Config.Acks is -4"},
			{asks, redlatch.Config{AckTimeout: -1}, "Config.AckTimeout is -1ns"},
			{asks, redlatch.Config{AckTimeout: time.Microsecond}, "Config.AckTimeout is 1µs"},
			{plain, redlatch.Config{Acks: 1}, "Config.Acks is 1, but the goredis driver cannot wait for replicas"},
			{plain, redlatch.Config{Acks: redlatch.AcksAny}, ""},
			{plain, redlatch.Config{Acks: redlatch.AcksBestEffort}, ""},
			{asks, redlatch.Config{Acks: 3, AckTimeout: time.Millisecond}, ""},
			{asks, redlatch.Config{AckTimeout: time.Hour}, ""},
		} {
			c, err := redlatch.New(x.driver, x.cfg)
			switch {
			case err == nil:
				if x.says != "" {
					t.Errorf("%+v is accepted", x.cfg)
				}
				w.no(c.Close())
			case x.says == "" || !strings.Contains(err.Error(), x.says):
				t.Errorf("%+v: %v", x.cfg, err)
			}
		}
	})
}
