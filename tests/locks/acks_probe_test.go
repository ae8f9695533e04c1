package locks

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
	"github.com/redlatch/redlatch/observe"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// Redisson issues 3474, 5586, 4211 and 6702: questions about replicas cost more
// than locks.
func TestAPrimaryIsAskedForItsReplicasOnce(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, d := w.Acking(redlatch.Config{}, 1, 1)
		for range 50 {
			w.Release(w.Acquire(bg, c.Lock("name")))
			time.Sleep(time.Minute)
		}
		if n := d.Questions(); n != 1 {
			t.Errorf("asked %d times", n)
		}
		d.BreakNow()
		w.Release(w.Acquire(bg, c.Lock("name")))
		w.Release(w.Acquire(bg, c.Lock("name")))
		if n := d.Questions(); n != 1 {
			t.Errorf("asked %d times after a break", n)
		}
	})
}

func TestAPrimaryWithoutReplicasIsAskedOnceASecond(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		d := &slowAnswer{} // all of a crowd come before it
		d.Follow(0, 0)
		d.Redis = w.Driver()
		c := w.ClientWith(d, redlatch.Config{Acks: redlatch.AckAny})
		w.Release(w.Acquire(bg, c.Lock("name")))
		d.Questions()
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
		if n := d.Questions(); n < 30 || n > 61 {
			t.Errorf("asked %d times in a minute, of which each second 5 acquire something", n)
		}
		if got := d.Takes(); len(got) > 0 {
			t.Errorf("waited for %d acknowledgements of nobody", len(got))
		}
		d.Follow(1, 1)
		time.Sleep(10 * time.Second)
		w.Release(w.Acquire(bg, c.Lock("name")))
		if got := d.Takes(); len(got) != 1 {
			t.Errorf("waited for %v of a replica that has come", got)
		}
	})
}

// twoNodes is an acker whose server is two nodes.
type twoNodes struct{ locktest.Acker }

func (d *twoNodes) Node(key string) string { return key[:3] }

// A cluster's primaries have each replicas of their own.
func TestEveryNodeOfAClusterIsAskedAbout(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		d := &twoNodes{}
		d.Redis, d.Cluster = w.Driver(), true
		d.Follow(1, 1)
		c := w.ClientWith(d, redlatch.Config{})
		for range 3 {
			for _, name := range []string{"{a}1", "{a}2", "{b}"} {
				w.Release(w.Acquire(bg, c.Lock(name)))
			}
		}
		if n := d.Questions(); n != 2 {
			t.Errorf("asked %d times about 2 nodes", n)
		}
	})
}

// batching is an acker whose driver sends several requests together.
type batching struct {
	locktest.Acker
	largest atomic.Int64
}

func (d *batching) Traits() driver.Traits {
	t := d.Acker.Traits()
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
		locktest.InFakeTime(t, func(w *locktest.World) {
			d := &batching{}
			d.Follow(replicas, 1)
			d.Redis = w.Driver()
			d.Keyed = func(_ string, _, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
				time.Sleep(time.Millisecond)
				return next()
			}
			c := w.ClientWith(d, redlatch.Config{Acks: redlatch.AckAny})
			w.Release(w.Acquire(bg, c.Lock("name")))
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
				w.Release(h)
			}
		})
	}
}

func serverError(text string) error { return driver.ServerError(text, errors.New(text)) }

// Redisson issues 5614 and 6223: where a managed server has no WAIT, or does not
// let anybody see its replicas, nothing worked.
func TestAServerWithoutWaitIsUsedSilently(t *testing.T) {
	for name, set := range map[string]func(d *locktest.Acker){
		"no permission for ROLE": func(d *locktest.Acker) {
			d.Fail(serverError("NOPERM this user has no permissions to run the 'role' command"))
		},
		"no ROLE": func(d *locktest.Acker) { d.Fail(serverError("ERR unknown command 'ROLE', with args beginning with: ")) },
		"no WAIT": func(d *locktest.Acker) { d.Follow(1, -1) },
	} {
		for _, policy := range []redlatch.Acks{redlatch.AckAuto, redlatch.AckAny, redlatch.AckBestEffort} {
			t.Run(fmt.Sprint(name, policy), func(t *testing.T) {
				locktest.InFakeTime(t, func(w *locktest.World) {
					d := &locktest.Acker{}
					d.Follow(1, 1)
					set(d)
					c := w.AckingWith(redlatch.Config{
						Acks: policy,
					}, d, observe.Hooks{NotAcknowledged: func(e observe.NotAcknowledgedEvent) { t.Errorf("%+v", e) }})
					start := time.Now()
					for _, x := range takings() {
						if strings.HasPrefix(x.name, "multi") || x.name == "red" {
							continue // they need more clients
						}
						w.Server.FlushAll()
						if x.setUp != nil {
							x.setUp(w, c)
						}
						release, err := x.take([]*redlatch.Client{c}, bg, false)
						w.OK(err)
						w.OK(release(bg))
					}
					if took := time.Since(start); took > 100*time.Millisecond {
						t.Errorf("took %v", took)
					}
					if asked := d.Questions() + len(d.Takes()); asked > 2 {
						t.Errorf("asked %d times", asked)
					}
					h := w.Acquire(bg, c.Lock("kept"))
					time.Sleep(time.Minute)
					w.Release(h)
				})
			})
		}
	}
}

func TestANumberOfReplicasIsRequiredOfAServerWithoutWaitToo(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, _ := w.Acking(redlatch.Config{Acks: redlatch.AckRequired, AckReplicas: 1}, 1, -1)
		start := time.Now()
		_, err := c.Lock("name").Acquire(bg)
		w.WantAck(err, "name", 0, 1)
		if redlatch.IsRetryable(err) || !strings.Contains(err.Error(), "WAIT") || time.Since(start) > time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		locktest.Settled()
		w.WantLocksGone()
	})
}

// Whether there are replicas has to be known; a server that does not answer says
// nothing about that.
func TestAServerThatDoesNotSayIsAnOutage(t *testing.T) {
	broken := errors.New("connection reset")
	for _, policy := range []redlatch.Acks{redlatch.AckAny, redlatch.AckBestEffort} {
		locktest.InFakeTime(t, func(w *locktest.World) {
			c, d := w.Acking(redlatch.Config{Acks: policy}, 1, 1)
			d.Fail(broken)
			_, err := c.Lock("name").Acquire(bg)
			w.WantErr(err, redlatch.ErrUnavailable, broken)
			if errors.Is(err, redlatch.ErrNotAcknowledged) {
				t.Errorf("got %v", err)
			}
			time.AfterFunc(3*time.Second, func() { d.Fail(nil) })
			h := w.Acquire(bg, c.Lock("name"))
			d.Fail(serverError("NOAUTH Authentication required."))
			d.BreakNow()
			_, err = c.Lock("other").Acquire(bg)
			w.WantErr(err, d.Ask)
			d.Fail(nil)
			time.Sleep(time.Minute)
			w.Release(h)
		})
	}
}

// A primary that is cut off from its replicas, and then from its clients, has not
// lost its replicas: they are about to have another one.
func TestAPrimaryThatDoesNotAnswerAnyMoreHasNotLostItsReplicas(t *testing.T) {
	for _, failure := range []error{errors.New("connection reset"), serverError("READONLY You can't write against a read only replica.")} {
		locktest.InFakeTime(t, func(w *locktest.World) {
			c, d := w.Acking(redlatch.Config{Acks: redlatch.AckAny}, 1, 1)
			w.Release(w.Acquire(bg, c.Lock("name")))
			d.Answer(func(string, []string, int) (int, error) {
				d.Fail(failure)
				return 0, nil
			})
			_, err := c.Lock("name").Acquire(bg)
			w.WantAck(err, "name", 0, 1)
			d.Fail(nil)
			d.Follow(0, 0)
			w.Release(w.Acquire(bg, c.Lock("name"))) // they have gone by now
		})
	}
}

// Replicas go and come back: while there are none nobody waits for them.
func TestReplicasThatHaveGoneAreNotWaitedFor(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, d := w.Acking(redlatch.Config{Acks: redlatch.AckAny}, 1, 1)
		l := c.Lock("name")
		took := func() time.Duration {
			start := time.Now()
			w.Release(w.Acquire(bg, l))
			return time.Since(start)
		}
		took()
		d.Follow(0, 0)
		if first, next := took(), took(); first != time.Second || next > time.Millisecond {
			t.Errorf("took %v, then %v", first, next)
		}
		d.Follow(1, 0)
		if now := took(); now > time.Millisecond {
			t.Errorf("took %v", now)
		}
		time.Sleep(11 * time.Second)
		_, err := l.Acquire(bg)
		w.WantAck(err, "name", 0, 1)
		d.Follow(2, 1)
		took()
	})
}

// After a break there may be another primary, of which the answer of the last one
// says nothing.
func TestWhatWasLearnedOfTheLastPrimaryDoesNotCount(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		d := &slowAnswer{}
		d.Follow(0, 0)
		d.Redis = w.Driver()
		c := w.ClientWith(d, redlatch.Config{Acks: redlatch.AckAny})
		asking := locktest.Acquiring(c.Lock("before"))
		synctest.Wait()
		d.Follow(1, 0)
		d.BreakNow()
		w.Release((<-asking).Hold)
		_, err := c.Lock("after").Acquire(bg)
		w.WantAck(err, "after", 0, 1)
	})
}

// slowAnswer is an acker that takes a second to say how many replicas there were.
type slowAnswer struct{ locktest.Acker }

func (d *slowAnswer) Replicas(ctx context.Context, key string) (int, error) {
	n, err := d.Acker.Replicas(ctx, key)
	time.Sleep(time.Second)
	return n, err
}

// Who gives little time learns in time how it ended.
func TestReplicasHaveHalfOfTheTimeThatThereIs(t *testing.T) {
	for _, policy := range []redlatch.Acks{redlatch.AckBestEffort, redlatch.AckAny, redlatch.AckRequired} {
		locktest.InFakeTime(t, func(w *locktest.World) {
			c, d := w.Acking(redlatch.Config{Acks: policy, AckReplicas: oneIfRequired(policy), AckTimeout: 5 * time.Second}, 1, 0)
			try := func(want time.Duration, ctx context.Context, wait time.Duration, opts ...redlatch.PlainOption) {
				t.Helper()
				locktest.Settled() // or the last one may not have been given back
				start := time.Now()
				h, err := c.Lock("name", opts...).TryAcquire(ctx, wait)
				if policy == redlatch.AckBestEffort {
					w.OK(err)
					w.Release(h)
				} else {
					w.WantAck(err, "name", 0, 1)
				}
				d.Mu.Lock()
				limit := d.Limits[len(d.Limits)-1]
				d.Mu.Unlock()
				if took := time.Since(start); took != want || limit != want {
					t.Errorf("took %v, %v for replicas, want %v", took, limit, want)
				}
			}
			try(1500*time.Millisecond, bg, 24*time.Hour)
			try(200*time.Millisecond, bg, 400*time.Millisecond)
			try(1500*time.Millisecond, bg, time.Hour)
			try(50*time.Millisecond, bg, time.Hour, redlatch.Lease(time.Second))
			ctx, cancel := context.WithTimeout(bg, 301*time.Millisecond) // settled takes one of them
			defer cancel()
			try(150*time.Millisecond, ctx, 400*time.Millisecond)
		})
	}
}

func TestNewRefusesAcksThatItCannotAskFor(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		plain := &locktest.Tap{Redis: w.Driver()} // no Acker
		asks := &locktest.Acker{}
		asks.Redis = plain.Redis
		for _, x := range []struct {
			driver driver.Redis
			cfg    redlatch.Config
			says   string // empty: it is fine
		}{
			{asks, redlatch.Config{Acks: 5}, "Config.Acks is 5"},
			{asks, redlatch.Config{Acks: redlatch.AckRequired}, "Config.AckReplicas is 0 with AckRequired; set it to how many"},
			{asks, redlatch.Config{Acks: redlatch.AckRequired, AckReplicas: -1}, "Config.AckReplicas is -1 with AckRequired; set it to how many"},
			{asks, redlatch.Config{AckReplicas: 2}, `Config.AckReplicas is 2, but Config.Acks is "auto"; set Config.Acks to AckRequired`},
			{asks, redlatch.Config{Acks: redlatch.AckBestEffort, AckReplicas: 1}, `Config.Acks is "best effort"; set Config.Acks to AckRequired`},
			{asks, redlatch.Config{AckTimeout: -1}, "Config.AckTimeout is -1ns"},
			{asks, redlatch.Config{AckTimeout: time.Microsecond}, "Config.AckTimeout is 1µs"},
			{plain, redlatch.Config{Acks: redlatch.AckRequired, AckReplicas: 1}, "Config.Acks is AckRequired, but the redlatchgoredis driver cannot wait for replicas"},
			{plain, redlatch.Config{Acks: redlatch.AckAny}, ""},
			{plain, redlatch.Config{Acks: redlatch.AckBestEffort}, ""},
			{asks, redlatch.Config{Acks: redlatch.AckRequired, AckReplicas: 3, AckTimeout: time.Millisecond}, ""},
			{asks, redlatch.Config{AckTimeout: time.Hour}, ""},
		} {
			c, err := redlatch.New(x.driver, x.cfg)
			switch {
			case err == nil:
				if x.says != "" {
					t.Errorf("%+v is accepted", x.cfg)
				}
				w.OK(c.Close())
			case x.says == "" || !strings.Contains(err.Error(), x.says):
				t.Errorf("%+v: %v", x.cfg, err)
			}
		}
	})
}
