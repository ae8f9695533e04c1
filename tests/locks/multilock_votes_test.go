package locks

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// Callers that each have some of the votes give them back and one of them wins.
func TestSplitVotesOfRedLocksEnd(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			inRedTime(t, 5, func(p *poll) {
				var inside, sections atomic.Int64
				var wg sync.WaitGroup
				start := time.Now()
				for i := range uint64(3) {
					dice := rand.New(rand.NewPCG(seed, i))
					var mu sync.Mutex
					hooks := map[int]func(string, []string, func() (driver.Reply, error)) (driver.Reply, error){}
					for s := range p.servers {
						hooks[s] = func(_ string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
							mu.Lock()
							there, back, lost := dice.IntN(8), dice.IntN(8), dice.IntN(60)
							mu.Unlock()
							time.Sleep(time.Duration(there) * time.Millisecond)
							reply, err := next()
							time.Sleep(time.Duration(back) * time.Millisecond)
							if lost == 0 {
								return driver.Reply{}, locktest.ErrReplyLost
							}
							return reply, err
						}
					}
					m := p.tappedRed("a", hooks)
					wg.Go(func() {
						for range 10 {
							err := m.Do(bg, func(ctx context.Context) error {
								if inside.Add(1) != 1 {
									t.Error("two holders")
								}
								time.Sleep(5 * time.Millisecond)
								inside.Add(-1)
								sections.Add(1)
								return ctx.Err()
							})
							if err != nil {
								t.Error(err)
							}
						}
					})
				}
				wg.Wait()
				t.Logf("%d sections in %v", sections.Load(), time.Since(start))
				if d := time.Since(start); d > 30*time.Second {
					t.Errorf("%d sections took %v", sections.Load(), d)
				}
				time.Sleep(15 * time.Second)
				p.wantNothing()
			})
		})
	}
}

// A caller that is refused by one member gives back what it has of the others at
// once: to wait for a member that is silent would keep them from everybody, and
// somebody would be waiting so all the time.
func TestWhoIsRefusedDoesNotKeepVotesForASilentMember(t *testing.T) {
	inRedTime(t, 3, func(p *poll) {
		var on atomic.Bool
		on.Store(true)
		m := p.tappedRed("a", map[int]func(string, []string, func() (driver.Reply, error)) (driver.Reply, error){2: blackHole(&on, 0)})
		rival := p.Acquire(bg, p.servers[1].Client(redlatch.Config{}).Lock("a"))
		start := time.Now()
		_, err := m.TryAcquire(bg, 0)
		p.WantErr(err, redlatch.ErrBusy)
		if d := time.Since(start); d > 20*time.Millisecond {
			t.Errorf("refused after %v", d)
		}
		synctest.Wait()
		if p.servers[0].Server.Exists("a") {
			t.Error("a vote is left behind")
		}
		p.Release(rival)
		p.Release(p.Acquire(bg, m))
		on.Store(false)
		time.Sleep(15 * time.Second)
		p.wantNothing()
	})
}

func TestSplitVotesEndWithASilentMinority(t *testing.T) {
	inRedTime(t, 3, func(p *poll) {
		var on atomic.Bool
		on.Store(true)
		hole := blackHole(&on, 0)
		var wg sync.WaitGroup
		start := time.Now()
		for range 4 {
			far := func(_ string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
				time.Sleep(5 * time.Millisecond)
				defer time.Sleep(5 * time.Millisecond)
				return next()
			}
			m := p.tappedRed("a", map[int]func(string, []string, func() (driver.Reply, error)) (driver.Reply, error){0: far, 1: far, 2: hole})
			wg.Go(func() {
				for range 10 {
					if err := m.Do(bg, func(ctx context.Context) error { return ctx.Err() }); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		t.Logf("40 sections in %v", time.Since(start))
		if d := time.Since(start); d > 10*time.Second {
			t.Errorf("40 sections took %v", d)
		}
		on.Store(false)
		time.Sleep(15 * time.Second)
		p.wantNothing()
	})
}

// Who is refused by the one member that answers, and by nobody else, still learns
// in time that the others do not.
func TestContendersOfARedLockLearnThatAMajorityIsDown(t *testing.T) {
	inRedTime(t, 3, func(p *poll) {
		var on atomic.Bool
		on.Store(true)
		hole := blackHole(&on, 0)
		var wg sync.WaitGroup
		start := time.Now()
		for range 4 {
			m := p.tappedRed("a", map[int]func(string, []string, func() (driver.Reply, error)) (driver.Reply, error){1: hole, 2: hole})
			wg.Go(func() {
				_, err := m.Acquire(bg)
				if d := time.Since(start); !errors.Is(err, redlatch.ErrUnavailable) || d > 14*time.Second {
					t.Errorf("%v after %v", err, d)
				}
			})
		}
		wg.Wait()
		on.Store(false)
		time.Sleep(15 * time.Second)
		p.wantNothing()
	})
}

// Goroutines of one process wait for each other instead of splitting votes: they
// get the lock in the order in which they came, and Try gets it from none of them.
func TestAProcessIsOneVoterForARedLock(t *testing.T) {
	inRedTime(t, 3, func(p *poll) {
		locks := locktest.Members(p.red("a"))
		first := p.Acquire(bg, redlatch.RedLock(locks...))
		var order []int
		var wg sync.WaitGroup
		for i := range 6 {
			wg.Go(func() {
				m := redlatch.RedLock(locks[i%3], locks[(i+1)%3], locks[(i+2)%3]) // in any order
				if err := m.Do(bg, func(context.Context) error {
					order = append(order, i)
					time.Sleep(time.Millisecond)
					return nil
				}); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		p.Release(first)
		synctest.Wait()
		if _, err := redlatch.RedLock(locks...).TryAcquire(bg, 0); !errors.Is(err, redlatch.ErrBusy) {
			t.Errorf("Try overtakes: %v", err)
		}
		wg.Wait()
		if !slices.IsSorted(order) || len(order) != 6 {
			t.Errorf("the order was %v", order)
		}
		p.wantNothing()
	})
}

// Readers do not exclude each other.
func TestReadersOfOneProcessShareARedLock(t *testing.T) {
	inRedTime(t, 3, func(p *poll) {
		var locks []*redlatch.Lock
		for _, w := range p.servers {
			locks = append(locks, w.Client(redlatch.Config{}).ReadWriteLock("a").Read())
		}
		m := redlatch.RedLock(locks...)
		h := p.Acquire(bg, m)
		p.Release(p.AcquireWithin(bg, m, time.Second))
		p.Release(h)
		p.wantNothing()
	})
}

// However a hold of a red lock ends, the next goroutine of the process gets in.
func TestWhoWaitsForARedLockOfItsOwnProcess(t *testing.T) {
	ends := map[string]func(p *poll, h *redlatch.Hold){
		"is let in by a release": func(p *poll, h *redlatch.Hold) { p.Release(h) },
		"is let in by a loss": func(p *poll, _ *redlatch.Hold) {
			p.servers[0].Server.FlushAll()
			p.servers[1].Server.FlushAll()
		},
		"is let in by a release of members": func(p *poll, h *redlatch.Hold) {
			p.Release(h.Members()[0])
			p.Release(h.Members()[1])
			p.Release(h.Members()[2])
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			inRedTime(t, 3, func(p *poll) {
				m := p.red("a")
				h := p.Acquire(bg, m)
				synctest.Wait()
				_, err := m.TryAcquire(bg, 0)
				_, err2 := m.TryAcquire(bg, time.Second)
				for _, err := range []error{err, err2} {
					var busy *redlatch.BusyError
					if !errors.As(err, &busy) || busy.Name != "a" || busy.Owner != h.Members()[0].ID() || busy.TTL < 20*time.Second {
						t.Errorf("%#v", err)
					}
				}
				next := locktest.Later(func() *redlatch.Hold { return p.Acquire(bg, m) })
				synctest.Wait()
				end(p, h)
				p.Release(<-next)
				p.Release(p.Acquire(bg, m))
				_ = h.Release(bg) // the member that is left of a hold that was lost
				time.Sleep(time.Minute)
				p.wantNothing()
			})
		})
	}
}

// The client at which callers wait for each other may be the closed one.
func TestWhoWaitsForARedLockWaitsOnWithAClosedMinority(t *testing.T) {
	for closed := range 3 {
		inRedTime(t, 3, func(p *poll) {
			clients := make([]*redlatch.Client, 3)
			locks := make([]*redlatch.Lock, 3)
			for i, w := range p.servers {
				clients[i] = w.Client(redlatch.Config{})
				locks[i] = clients[i].Lock("a")
			}
			m := redlatch.RedLock(locks...)
			h := p.Acquire(bg, m)
			synctest.Wait()
			next := locktest.Later(func() error { return m.Do(bg, func(context.Context) error { return nil }) })
			synctest.Wait()
			if err := clients[closed].Close(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			p.Release(h)
			if err := <-next; err != nil {
				t.Error(err)
			}
		})
	}
}
