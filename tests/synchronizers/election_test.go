package synchronizers

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/election"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

const name = "scheduler"

// A candidate is one of a process of its own.
type candidate struct {
	*election.Candidate
	client *redlatch.Client
	tap    *locktest.Tap
	stop   context.CancelCauseFunc
	ended  <-chan error
	terms  chan context.Context // one for each term that begins
	over   chan struct{}        // a value ends the term; closed ends all
}

// stand has a candidate stand, whose terms last until they are over.
func stand(w *locktest.World, cfg redlatch.Config, hook func(script string, args []string, next func() (driver.Reply, error)) (driver.Reply, error), opts ...election.Option) *candidate {
	c := &candidate{terms: make(chan context.Context, 100), over: make(chan struct{})}
	c.tap = &locktest.Tap{Hook: hook}
	c.client = w.Tapped(cfg, c.tap)
	c.Candidate = election.New(c.client, name, opts...)
	ctx, stop := context.WithCancelCause(bg)
	c.stop = stop
	c.ended = locktest.Later(func() error {
		return c.Run(ctx, func(ctx context.Context, _ int64) error {
			c.terms <- ctx
			select {
			case <-c.over:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	})
	return c
}

var errEnough = errors.New("enough")

// end has the candidate stand no longer.
func (c *candidate) end(w *locktest.World) {
	w.Helper()
	c.stop(errEnough)
	w.WantErr(<-c.ended, context.Canceled, errEnough)
}

func term(ctx context.Context) int64 { return redlatch.HoldFrom(ctx).Token() }

// After FLUSHALL the numbers of terms began again with 1, and what checked them
// refused every leader.
func TestTermsRiseWhenTheServerHasLostItsData(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		last := int64(0)
		for range 3 {
			for range 3 {
				c := stand(w, redlatch.Config{}, nil)
				lead := <-c.terms
				if term(lead) <= last {
					t.Errorf("term %d after %d", term(lead), last)
				}
				last = term(lead)
				c.end(w)
			}
			w.Server.FlushAll()
			time.Sleep(time.Second)
		}
	})
}

// A Java service that acquires the RFencedLock counts on, whoever came first, and
// so does a FencedLock.
func TestTermsAreOneSequenceWithFencedLocks(t *testing.T) {
	const counter = "redisson_lock_token:{" + name + "}"
	for _, first := range []string{"an election", "Java"} {
		t.Run(first, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				last := int64(0)
				rises := func(token int64) {
					t.Helper()
					if token <= last || last > 0 && token != last+1 {
						t.Errorf("%d after %d", token, last)
					}
					last = token
				}
				java := func() {
					n, err := w.Server.Incr(counter, 1)
					w.OK(err)
					rises(int64(n))
				}
				if first == "Java" {
					java()
				}
				for range 3 {
					c := stand(w, redlatch.Config{}, nil)
					rises(term(<-c.terms))
					c.end(w)
					java()
					h := w.Acquire(bg, w.Client(redlatch.Config{}).Lock(name, redlatch.Fenced()))
					rises(h.Token())
					w.Release(h)
				}
				if w.Server.TTL(counter) != 0 {
					t.Error("the counter expires")
				}
			})
		})
	}
}

// kubernetes #23731: a leader that had lost its lease went on acting. Here it is
// told before anybody else can lead.
func TestALeaderThatIsCutOffIsToldBeforeTheNextOneLeads(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var cut atomic.Bool
		first := stand(w, redlatch.Config{}, locktest.Failing(&cut, locktest.ErrReplyLost))
		lead := <-first.terms
		second := stand(w, redlatch.Config{}, nil)
		time.Sleep(time.Minute)
		cut.Store(true)
		select {
		case <-second.terms:
			t.Fatal("the next one leads before the first one is told")
		case <-lead.Done():
		}
		w.WantErr(context.Cause(lead), redlatch.ErrLost)
		next := <-second.terms
		if term(next) <= term(lead) {
			t.Errorf("term %d after %d", term(next), term(lead))
		}
		// kuberhealthy #1533: after one lost lease nobody stood for election again.
		cut.Store(false)
		second.over <- struct{}{}
		if again := <-first.terms; term(again) <= term(next) {
			t.Errorf("term %d after %d", term(again), term(next))
		}
		first.end(w)
		second.end(w)
	})
}

// At a shutdown the next one leads within a round trip, and not after the lease.
func TestTheNextOneLeadsAtOnceWhenALeaderShutsDown(t *testing.T) {
	for _, how := range []string{"context", "Shutdown", "Resign"} {
		t.Run(how, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				first := stand(w, redlatch.Config{}, nil)
				lead := <-first.terms
				second := stand(w, redlatch.Config{}, nil)
				time.Sleep(10 * time.Second)
				start := time.Now()
				switch how {
				case "context":
					first.end(w)
				case "Shutdown":
					w.OK(first.client.Shutdown(bg))
					w.WantErr(<-first.ended, redlatch.ErrClosed)
				case "Resign":
					if led, err := first.Resign(bg); !led || err != nil {
						t.Errorf("Resign: %t, %v", led, err)
					}
					w.WantErr(context.Cause(lead), election.ErrResigned)
				}
				<-second.terms
				if d := time.Since(start); d > 10*time.Millisecond {
					t.Errorf("it took %v", d)
				}
				if how == "Resign" {
					time.Sleep(time.Minute)
					if led, err := first.Resign(bg); led || err != nil {
						t.Errorf("Resign of one that does not lead: %t, %v", led, err)
					}
					second.end(w)
					<-first.terms // it stands still
					first.end(w)
					return
				}
				second.end(w)
			})
		})
	}
}

// A leader that died is followed when its lease has ended. Closing its client is
// not that: a leader may return just in time, and release the lock.
func TestADeadLeaderIsFollowedWithinALease(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var dead atomic.Bool
		first := stand(w, redlatch.Config{}, locktest.Failing(&dead, locktest.ErrRefused))
		<-first.terms
		second := stand(w, redlatch.Config{}, nil)
		time.Sleep(time.Minute)
		start := time.Now()
		dead.Store(true)
		<-second.terms
		if d := time.Since(start); d < 19*time.Second || d > 33*time.Second {
			t.Errorf("it took %v", d)
		}
		dead.Store(false) // so that it can be stopped
		first.end(w)
		second.end(w)
	})
}

// A leader that has nothing to do does not ask the server to be elected without a
// pause.
func TestTermsThatAreShortComeMoreAndMoreSeldom(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		ctx, stop := context.WithTimeout(bg, time.Hour)
		defer stop()
		n := 0
		w.WantErr(election.New(w.Client(redlatch.Config{}), name).Run(ctx, func(context.Context, int64) error { n++; return nil }), context.DeadlineExceeded)
		if n < 100 || n > 170 { // every 30 s, but for the first
			t.Errorf("%d terms in an hour", n)
		}
	})
}

// The server was away for longer than Config.OutageTimeout, and the candidate had
// given up. Later it paused for longer after each campaign that failed, and the
// election stayed vacant for half a minute.
func TestACandidateOutlastsAnOutage(t *testing.T) {
	locktest.WithSeeds(t, 20, func(w *locktest.World, seed uint64) {
		var down atomic.Bool
		down.Store(true)
		c := stand(w, redlatch.Config{}, locktest.Failing(&down, locktest.ErrRefused))
		time.Sleep(10*time.Minute + time.Duration(seed)*time.Second) // whatever the candidate does at that moment
		down.Store(false)
		select {
		case <-c.terms:
		case <-time.After(3 * time.Second):
			t.Error("nobody leads three seconds after the outage")
			<-c.terms
		}
		c.end(w)
	})
}

// What cannot heal ends Run.
func TestACandidateThatMayNotIsTold(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		w.OK(w.Server.Set(name, "no lock"))
		c := w.Client(redlatch.Config{})
		err := election.New(c, name).Run(bg, func(context.Context, int64) error { panic("it leads") })
		var re *driver.RunError
		if !errors.As(err, &re) || re.Code != "WRONGTYPE" {
			t.Errorf("Run: %v", err)
		}
		if err := election.New(c, "").Run(bg, nil); err == nil {
			t.Error("an empty name was accepted")
		}
		//nolint:staticcheck // that is the test
		if err := election.New(c, "x").Run(nil, nil); err == nil {
			t.Error("a nil context was accepted")
		}
		if _, err := election.New(c, "").Leader(bg); err == nil {
			t.Error("an empty name was accepted")
		}
		if _, err := election.New(c, "").Resign(bg); err == nil {
			t.Error("an empty name was accepted")
		}
		for _, err := range election.New(c, "").Observe(bg) {
			if err == nil {
				t.Error("an empty name was accepted")
			}
		}
	})
}

// A term goes on for as long as its leader likes. Shutdown waited for ever for one
// that began at that very moment.
func TestATermThatMeetsShutdownEnds(t *testing.T) {
	for at := range 12 {
		locktest.InFakeTime(t, func(w *locktest.World) {
			c := stand(w, redlatch.Config{}, func(_ string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
				time.Sleep(2 * time.Millisecond)
				defer time.Sleep(2 * time.Millisecond)
				return next()
			})
			time.Sleep(time.Duration(at) * time.Millisecond)
			ctx, cancel := context.WithTimeout(bg, time.Hour)
			defer cancel()
			w.OK(c.client.Shutdown(ctx))
			w.WantErr(<-c.ended, redlatch.ErrClosed)
			select {
			case lead := <-c.terms:
				w.WantErr(context.Cause(lead), redlatch.ErrClosed)
			default:
			}
			if ctx.Err() != nil || w.Server.Exists(name) {
				t.Errorf("%d ms: Shutdown took all the time that it had, or the next one has to wait for the lease", at)
			}
		})
	}
}
