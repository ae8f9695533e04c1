package synchronizers

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/ratelimit"
	"github.com/redlatch/redlatch/semaphore"
	"github.com/redlatch/redlatch/tests/internal/drivers"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// What ends ends with all its keys, and what is to last lasts with all of them.
func TestExpireAndPersistAreAboutAllKeysOfAnObject(t *testing.T) {
	type object interface {
		Expire(ctx context.Context, d time.Duration) (bool, error)
		Persist(ctx context.Context) (bool, error)
	}
	for name, kind := range map[string]struct {
		make func(w *locktest.World, c *redlatch.Client) object
		keys []string
		own  []string // end an interval after their last use, whatever is said
	}{
		"semaphore": {func(w *locktest.World, c *redlatch.Client) object {
			s := semaphore.New(c, locktest.Pool, 0)
			w.OK(s.Release(bg, 3))
			return s
		}, []string{locktest.Pool}, nil},
		"permits": {func(w *locktest.World, c *redlatch.Client) object {
			s := semaphore.NewExpirable(c, locktest.Pool, 3, redlatch.Lease(time.Hour))
			_, err := s.Acquire(bg, 1)
			w.OK(err)
			return s
		}, []string{locktest.Pool, "{" + locktest.Pool + "}:timeout"}, nil},
		"rate": {func(w *locktest.World, c *redlatch.Client) object {
			l := ratelimit.New(c, locktest.Pool, ratelimit.Rate{Permits: 5, Interval: time.Hour})
			w.OK(l.Acquire(bg, 2))
			return l
		}, []string{locktest.Pool, "{" + locktest.Pool + "}:value", "{" + locktest.Pool + "}:permits"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				c := w.Client(redlatch.Config{})
				o := kind.make(w, c)
				ttls := func(want time.Duration) {
					t.Helper()
					for _, key := range kind.keys {
						if ttl := w.Server.TTL(key); !w.Server.Exists(key) || ttl != want {
							t.Errorf("%s: exists %v, ends in %v, want %v", key, w.Server.Exists(key), ttl, want)
						}
					}
				}
				says := func(want bool, f func() (bool, error)) {
					t.Helper()
					if there, err := f(); err != nil || there != want {
						t.Errorf("%v, %v, want %v", there, err, want)
					}
				}
				minute := func() (bool, error) { return o.Expire(bg, time.Minute) }
				forEver := func() (bool, error) { return o.Persist(bg) }
				ttls(0)
				says(true, minute)
				ttls(time.Minute)
				says(true, forEver)
				ttls(0)
				if _, err := o.Expire(bg, 0); err == nil {
					t.Error("it can end at once")
				}
				says(true, minute)
				time.Sleep(time.Minute + time.Millisecond)
				for _, key := range kind.keys {
					if w.Server.Exists(key) {
						t.Errorf("%s is there when its time is over", key)
					}
				}
				says(false, minute)
				says(false, forEver)

				// A lock is not to be cut short by a mistaken name.
				h, err := c.Lock(locktest.Pool).Acquire(bg)
				w.OK(err)
				if name != "rate" { // which is a hash, as a lock is
					_, err = o.Expire(bg, time.Second)
					if driver.Failure(err).Code != "WRONGTYPE" {
						t.Errorf("%v, want WRONGTYPE", err)
					}
				}
				w.OK(h.Release(bg))
			})
		})
	}
}

// Callers that go on until the end meet the semaphore's last millisecond, in which
// its TTL is 0.
func TestASemaphoreThatEndsInUseHasItsPermitsAfterwards(t *testing.T) {
	for name, use := range map[string]func(p *redlatch.Hold){
		"kept": func(p *redlatch.Hold) { _, _ = p.Detach() },
		"released": func(p *redlatch.Hold) {
			_ = p.Release(bg) // or it has ended
		},
	} {
		t.Run(name, func(t *testing.T) {
			locktest.OnRealServers(t, func(t *testing.T, s *testserver.Server) {
				c := locktest.ClientOf(t, drivers.Goredis.Open(t, drivers.Single(s.Addr())), redlatch.Config{})
				raw := locktest.RawGoredis(t, s)
				const permits = 100_000
				off, stays := map[int]int{}, 0
				for i := range 200 {
					name := fmt.Sprintf("s%d", i)
					sem := semaphore.NewExpirable(c, name, []int{permits, 0}[i%2], redlatch.Lease(time.Second))
					if _, err := sem.TrySetPermits(bg, permits); err != nil {
						t.Fatal(err)
					}
					if _, err := sem.Expire(bg, 10*time.Millisecond); err != nil {
						t.Fatal(err)
					}
					time.Sleep(7 * time.Millisecond)
					var wg sync.WaitGroup
					for range 2 {
						wg.Go(func() {
							for end := time.Now().Add(8 * time.Millisecond); time.Now().Before(end); {
								if p, err := sem.TryAcquire(bg, 1, 0); err == nil {
									use(p)
								}
							}
						})
					}
					wg.Wait()
					if i%2 != 0 {
						time.Sleep(2 * time.Millisecond)
						if raw.Exists(bg, "{"+name+"}:timeout").Val() == 1 && raw.Exists(bg, name).Val() == 0 {
							stays++
						}
					}
					if n, _ := sem.Permits(bg); n != permits && n != 0 { // 0: it ended after the last call
						off[n-permits]++
					}
				}
				if len(off) > 0 || stays > 0 {
					t.Errorf("off by, how often: %v; what was given stays of %d", off, stays)
				}
			})
		})
	}
}

// Of a semaphore that is gone nothing comes back: it would be one with so many
// permits, for ever.
func TestWhatComesBackToASemaphoreThatIsGoneMakesNone(t *testing.T) {
	for name, back := range map[string]func(s *semaphore.Expirable, p *redlatch.Hold){
		"released": func(_ *semaphore.Expirable, p *redlatch.Hold) { _ = p.Release(bg) },
		"swept": func(s *semaphore.Expirable, p *redlatch.Hold) {
			_, _ = p.Detach() // it may be over
			time.Sleep(time.Hour)
			_, _ = s.Permits(bg)
		},
		"by its id": func(s *semaphore.Expirable, p *redlatch.Hold) {
			_, _ = p.Detach() // it may be over
			_ = s.Release(bg, p.ID())
		},
	} {
		t.Run(name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				s := semaphore.NewExpirable(w.Client(redlatch.Config{}), locktest.Pool, 0, redlatch.Lease(time.Minute))
				w.OK(s.SetPermits(bg, 3))
				p, err := s.TryAcquire(bg, 1, 0)
				w.OK(err)
				w.Server.Del(locktest.Pool) // and what was given is still there
				back(s, p)
				if w.Server.Exists(locktest.Pool) {
					t.Error("it is made anew")
				}
			})
		})
	}
}

// What was given of a semaphore that has ended does not come back to the one that
// AddPermits makes.
func TestPermitsThatAreAddedAnewAreAll(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		s := semaphore.NewExpirable(w.Client(redlatch.Config{}), "pool", 0, redlatch.Lease(time.Minute))
		w.OK(s.SetPermits(bg, 3))
		for range 2 {
			_, err := s.Acquire(bg, 1)
			w.OK(err)
		}
		w.Server.Del("pool") // as if it had ended, a millisecond before the set of what is given
		if n, err := s.Permits(bg); err != nil || n != 0 {
			t.Errorf("%d permits of none, %v", n, err)
		}
		w.OK(s.AddPermits(bg, 3))
		time.Sleep(time.Hour)
		if n, err := s.Permits(bg); err != nil || n != 3 {
			t.Errorf("%d permits of 3, %v", n, err)
		}
	})
}
