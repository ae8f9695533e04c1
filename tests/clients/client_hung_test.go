package clients

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/barrier"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/latch"
	"github.com/redlatch/redlatch/ratelimit"
	"github.com/redlatch/redlatch/redisson"
	"github.com/redlatch/redlatch/semaphore"
	"github.com/redlatch/redlatch/tests/internal/drivers"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// An attempt is a call of three clients, of which most need one.
type attempt = func(ctx context.Context, cs []*redlatch.Client) error

// calls are those that fail when the server does not answer.
func calls() map[string]attempt {
	all := map[string]attempt{}
	for name, wait := range waits() {
		all[name] = func(ctx context.Context, cs []*redlatch.Client) error { return wait(ctx, cs[0], forEver) }
	}
	several := func(of func(...*redlatch.Lock) *redlatch.Lock, members func(cs []*redlatch.Client) []*redlatch.Lock) attempt {
		return func(ctx context.Context, cs []*redlatch.Client) error {
			_, err := of(members(cs)...).Acquire(ctx)
			return err
		}
	}
	owner := redlatch.WithOwner(context.Background())
	maps.Copy(all, map[string]attempt{
		"lock of one owner": func(_ context.Context, cs []*redlatch.Client) error {
			_, err := cs[0].Lock("owned").Acquire(owner)
			return err
		},
		"fenced lock": func(ctx context.Context, cs []*redlatch.Client) error {
			_, err := cs[0].Lock("fenced", redlatch.Fenced()).Acquire(ctx)
			return err
		},
		"several locks": several(redlatch.MultiLock, func(cs []*redlatch.Client) []*redlatch.Lock {
			return []*redlatch.Lock{cs[0].Lock("m1"), cs[0].Lock("m2")}
		}),
		"several locks of all kinds": several(redlatch.MultiLock, func(cs []*redlatch.Client) []*redlatch.Lock {
			return []*redlatch.Lock{cs[0].FairLock("k1"), cs[0].ReadWriteLock("k2").Read(), redisson.GroupLock(cs[1], "k3", []string{"a"}), redisson.SpinLock(cs[2], "k4", nil)}
		}),
		"majority": several(redlatch.RedLock, func(cs []*redlatch.Client) []*redlatch.Lock {
			return []*redlatch.Lock{cs[0].Lock("r1"), cs[1].Lock("r2"), cs[2].Lock("r3")}
		}),
		"majority of readers": several(redlatch.RedLock, func(cs []*redlatch.Client) []*redlatch.Lock {
			return []*redlatch.Lock{cs[0].ReadWriteLock("q1").Read(), cs[1].ReadWriteLock("q2").Read(), cs[2].ReadWriteLock("q3").Read()}
		}),
		"barrier": func(ctx context.Context, cs []*redlatch.Client) error {
			_, err := barrier.New(cs[0], "barrier", 50).Await(ctx)
			return err
		},
		"count down": func(ctx context.Context, cs []*redlatch.Client) error {
			return latch.New(cs[0], "counted").CountDown(ctx)
		},
		"release of permits": func(ctx context.Context, cs []*redlatch.Client) error {
			return semaphore.New(cs[0], "given", 0).Release(ctx, 1)
		},
		"set-up of a rate": func(ctx context.Context, cs []*redlatch.Client) error {
			return ratelimit.New(cs[0], "made rate", ratelimit.Rate{Permits: 1, Interval: time.Second}).Acquire(ctx, 1)
		},
		"set-up of permits": func(ctx context.Context, cs []*redlatch.Client) error {
			_, err := semaphore.NewExpirable(cs[0], "made permits", 1).Acquire(ctx, 1)
			return err
		},
	})
	return all
}

// Callers of one process that want the same thing ask one at a time, and those
// behind hear nothing of a server that hangs or refuses everything but what the
// first one hears. Each fails when it has itself had no answer for
// Config.OutageTimeout, and not when the one before it has failed: also one that
// has come when the server had been silent for long.
func TestEachCallerFailsInItsOwnTimeInAnOutage(t *testing.T) {
	const timeOut, anAttempt = 10 * time.Second, 3*time.Second + 100*time.Millisecond // until its alarm has rung
	oom := driver.ServerError("OOM command not allowed when used memory > 'maxmemory'.", errors.New("OOM"))
	for what, fails := range map[string]func() error{
		"hangs":   func() error { time.Sleep(5 * time.Second); return locktest.ErrReplyLost },
		"refuses": func() error { time.Sleep(time.Millisecond); return oom },
		"is gone": func() error { return errNoConnection },
	} {
		for name, call := range calls() {
			t.Run(what+"/"+name, func(t *testing.T) {
				locktest.InFakeTime(t, func(w *locktest.World) {
					var down atomic.Bool
					down.Store(true)
					hook := func(_ string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
						if down.Load() {
							return driver.Reply{}, fails()
						}
						return next()
					}
					var cs []*redlatch.Client
					for range 3 {
						cs = append(cs, w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: hook}))
					}
					var lasted []<-chan time.Duration
					begin := func() {
						lasted = append(lasted, locktest.Later(func() time.Duration {
							start := time.Now()
							if err := call(bg, cs); !errors.Is(err, redlatch.ErrUnavailable) || !redlatch.IsRetryable(err) {
								t.Error(err)
							}
							return time.Since(start)
						}))
					}
					for range 30 {
						begin()
					}
					for range 10 {
						time.Sleep(1300 * time.Millisecond)
						begin()
					}
					var all []time.Duration
					for _, d := range lasted {
						all = append(all, <-d)
					}
					if first, last := slices.Min(all), slices.Max(all); first < timeOut || last > timeOut+anAttempt {
						t.Errorf("callers failed after %v to %v", first, last)
					} else {
						t.Logf("callers failed after %v to %v", first, last)
					}
					down.Store(false)
					time.Sleep(10 * time.Minute) // what is to be given back is
				})
			})
		}
	}
}

// Who waits for a holder of the same process needs no answer, until that has
// released.
func TestWhoWaitsBehindAHolderOfItsProcessFailsWhenThatIsOver(t *testing.T) {
	for name, lock := range locktest.TypesOfLock {
		if name == "fair" || name == "read" {
			continue // its waiters ask by themselves; readers share
		}
		t.Run(name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				var down atomic.Bool
				c := away(w, &down)
				held := w.Acquire(bg, lock(c, "held"))
				var ended []<-chan error
				for range 5 {
					ended = append(ended, locktest.Later(func() error { _, err := lock(c, "held").Acquire(bg); return err }))
				}
				time.Sleep(time.Second)
				down.Store(true)
				time.Sleep(25 * time.Second) // its renewals have had no answer for longer than the time-out
				waiting := slices.DeleteFunc(ended, func(c <-chan error) bool {
					if locktest.NoneYet(c) {
						return false
					}
					t.Errorf("a caller has failed behind a live hold: %v", <-c)
					return true
				})
				over := time.Now()
				go held.Release(bg) //nolint:errcheck // it fails
				for i, c := range waiting {
					if err := <-c; !errors.Is(err, redlatch.ErrUnavailable) {
						t.Errorf("caller %d: %v", i, err)
					}
				}
				if d := time.Since(over); d > 4*time.Second {
					t.Errorf("the last caller failed %v after the release", d)
				}
				down.Store(false)
				time.Sleep(10 * time.Minute)
			})
		})
	}
}

// Real servers hang, or have no memory, and real drivers wait for them each in its
// own way.
func TestEachCallerFailsInItsOwnTimeWhateverTheDriverAndTheServer(t *testing.T) {
	const timeOut, anAttempt = 4 * time.Second, time.Second
	const busy = 10 * time.Second // a machine may be; callers that fail one after the other need more than 30 s
	takesMemory := []string{"lock", "spin lock", "group lock", "write lock", "read lock", "several locks", "majority", "set-up of a rate", "set-up of permits"}
	locktest.OnRealServers(t, func(t *testing.T, server *testserver.Server) {
		place := drivers.Single(server.Addr())
		place.Timeout = time.Second
		open := func(a drivers.Adapter) (cs []*redlatch.Client) {
			for range 3 {
				c := locktest.ClientOf(t, a.Open(t, place), redlatch.Config{OutageTimeout: timeOut, WatchdogTimeout: 10 * time.Second, CloseTimeout: busy})
				if _, err := admin.LockInfo(bg, c.Lock("connects")); err != nil {
					t.Fatal(err)
				}
				cs = append(cs, c)
			}
			return cs
		}
		// fails calls all of these, 30 callers together and 10 late ones, and waits for
		// the last.
		fails := func(what string, cs []*redlatch.Client, names []string) {
			type end struct {
				name string
				d    time.Duration
				err  error
			}
			ended, n := make(chan end), 0
			all := calls()
			begin := func(callers int) {
				for _, name := range names {
					for range callers {
						n++
						go func() {
							start := time.Now()
							err := all[name](bg, cs)
							ended <- end{name, time.Since(start), err}
						}()
					}
				}
			}
			begin(30)
			time.Sleep(timeOut / 2)
			begin(10)
			longest := end{}
			for range n {
				e := <-ended
				if !errors.Is(e.err, redlatch.ErrUnavailable) || e.d < timeOut {
					t.Errorf("%s: %s failed after %v: %v", what, e.name, e.d, e.err)
				}
				if e.d > longest.d {
					longest = e
				}
			}
			t.Logf("%s: the last failed after %v: %s", what, longest.d, longest.name)
			if longest.d > timeOut+anAttempt+busy {
				t.Errorf("%s: %s failed after %v", what, longest.name, longest.d)
			}
		}
		for _, a := range drivers.Adapters {
			cs := open(a)
			server.MustDo("CONFIG", "SET", "maxmemory", "1")
			fails("the server has no memory: "+a.Name, cs, takesMemory)
			for _, c := range cs { // what they have in flight would be executed when there is memory again
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			}
			server.MustDo("CONFIG", "SET", "maxmemory", "0")
			server.MustDo("FLUSHALL")
			cs = open(a)
			server.Pause()
			fails("the server hangs: "+a.Name, cs, slices.Sorted(maps.Keys(calls())))
			server.Resume()
			for _, c := range cs {
				_ = c.Close() // the next ones would meet what they have got late
			}
			server.MustDo("FLUSHALL")
		}
	})
}
