package synchronizers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/barrier"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/wire"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// An arrived is what Await returned.
type arrived struct {
	index int
	err   error
	at    time.Time
}

func arriving(b *barrier.Barrier, ctx context.Context) <-chan arrived {
	c := locktest.Later(func() arrived {
		i, err := b.Await(ctx)
		return arrived{i, err, time.Now()}
	})
	synctest.Wait()
	return c
}

// wantTogether checks that all have gone on at once, each with another index.
func wantTogether(w *locktest.World, all ...<-chan arrived) {
	w.Helper()
	start := time.Now()
	var got, want []int
	for i, c := range all {
		a := <-c
		if a.err != nil {
			w.Fatalf("Await: %v", a.err)
		}
		got, want = append(got, a.index), append(want, i)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		w.Errorf("indexes %d", got)
	}
	if took := time.Since(start); took > 20*time.Millisecond {
		w.Errorf("they went on %v later", took)
	}
}

func wantBroken(w *locktest.World, c <-chan arrived, reason barrier.BreakReason, by string) arrived {
	w.Helper()
	a := <-c
	var broken *barrier.BrokenError
	if !errors.As(a.err, &broken) || !errors.Is(a.err, barrier.ErrBroken) || broken.Reason != reason || !strings.HasPrefix(broken.By, by) || a.index != -1 {
		w.Fatalf("got %d, %v; want one that is broken by %q, %s", a.index, a.err, reason, by)
	}
	return a
}

func wantStill(w *locktest.World, all ...<-chan arrived) {
	w.Helper()
	synctest.Wait()
	for _, c := range all {
		select {
		case a := <-c:
			w.Fatalf("Await has returned %d, %v", a.index, a.err)
		default:
		}
	}
}

func TestABarrierLetsGenerationAfterGenerationGo(t *testing.T) {
	for _, name := range []string{"orders", "{shop}:orders"} {
		t.Run(name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				a, b := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
				for range 5 {
					x := arriving(barrier.New(a, name, 3), bg)
					y := arriving(barrier.New(b, name, 3), bg)
					for _, key := range w.Keys() { // a cluster wants them together
						if !strings.HasPrefix(key, "redlatch_barrier") || wire.Slot(key) != wire.Slot(name) {
							t.Errorf("the key %s lies elsewhere", key)
						}
					}
					time.Sleep(20 * time.Second)
					wantStill(w, x, y)
					z := arriving(barrier.New(a, name, 3), bg)
					if i := <-z; i.index != 0 || i.err != nil {
						t.Fatalf("the last one got %d, %v", i.index, i.err)
					} else {
						again := make(chan arrived, 1)
						again <- i
						wantTogether(w, x, y, again)
					}
					w.WantQuiet()
				}
				time.Sleep(10*time.Minute + time.Second)
				if keys := w.Keys(); len(keys) > 0 {
					t.Errorf("left are %q", keys)
				}
			})
		})
	}
}

// The same object, as fast as it goes.
func TestABarrierInALoop(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		const parties, rounds = 4, 30
		var mu sync.Mutex
		leaders := make([]int, rounds)
		var wg sync.WaitGroup
		for range parties / 2 {
			b := barrier.New(w.ClientOver(time.Millisecond, redlatch.Config{}), "orders", parties)
			for range 2 {
				wg.Go(func() {
					for i := range rounds {
						index, err := b.Await(bg)
						if err != nil {
							t.Error(err)
							return
						}
						if index == 0 {
							mu.Lock()
							leaders[i]++
							mu.Unlock()
						}
					}
				})
			}
		}
		wg.Wait()
		for i, n := range leaders {
			if n != 1 {
				t.Errorf("round %d had %d last ones", i, n)
			}
		}
	})
}

// Whoever leaves breaks the generation for the others, and the next one is clean.
func TestAGenerationIsBrokenByOneThatIsMissing(t *testing.T) {
	type parties struct {
		a, b, x *locktest.Mortal
		cancel  context.CancelFunc
		leaver  <-chan arrived
	}
	for name, tt := range map[string]struct {
		wait   time.Duration
		leave  func(w *locktest.World, p *parties)
		reason barrier.BreakReason
		within time.Duration
	}{
		"context": {time.Hour, func(w *locktest.World, p *parties) {
			p.cancel()
			w.WantErr((<-p.leaver).err, context.Canceled, redlatch.ErrBusy)
		}, barrier.BrokenLeft, 10 * time.Millisecond},
		"deadline": {time.Second, func(w *locktest.World, p *parties) {
			err := (<-p.leaver).err
			w.WantErr(err, redlatch.ErrBusy, context.DeadlineExceeded)
			if !strings.Contains(err.Error(), `not all parties have come to barrier "orders"`) {
				w.Errorf("says %v", err)
			}
		}, barrier.BrokenLeft, 1010 * time.Millisecond},
		"close": {time.Hour, func(w *locktest.World, p *parties) {
			if err := p.x.Close(); err != nil {
				w.Error(err)
			}
			w.WantErr((<-p.leaver).err, redlatch.ErrClosed)
		}, barrier.BrokenLeft, 10 * time.Millisecond},
		"death": {time.Hour, func(w *locktest.World, p *parties) {
			p.x.Dead.Store(true)
		}, barrier.BrokenDead, 33 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				p := &parties{a: w.Mortal(), b: w.Mortal(), x: w.Mortal()}
				ctx, cancel := context.WithTimeout(bg, tt.wait)
				p.cancel = cancel
				defer cancel()
				others := []<-chan arrived{arriving(barrier.New(p.a.Client, "orders", 4), bg), arriving(barrier.New(p.a.Client, "orders", 4), bg), arriving(barrier.New(p.b.Client, "orders", 4), bg)}
				p.leaver = arriving(barrier.New(p.x.Client, "orders", 4), ctx)
				// Four have come: that generation is over. Of the next one is missing one.
				wantTogether(w, append(others, p.leaver)...)
				others = []<-chan arrived{arriving(barrier.New(p.a.Client, "orders", 4), bg), arriving(barrier.New(p.b.Client, "orders", 4), bg)}
				p.leaver = arriving(barrier.New(p.x.Client, "orders", 4), ctx)
				start := time.Now()
				tt.leave(w, p)
				for _, c := range others {
					if a := wantBroken(w, c, tt.reason, p.x.ID()); a.at.Sub(start) > tt.within {
						t.Errorf("the others learnt it after %v", a.at.Sub(start))
					}
				}
				if tt.reason == barrier.BrokenDead {
					p.x.Dead.Store(false)
					wantBroken(w, p.leaver, barrier.BrokenDead, p.x.ID())
				}
				var next []<-chan arrived
				for range 4 {
					wantStill(w, next...)
					next = append(next, arriving(barrier.New(p.b.Client, "orders", 4), bg))
				}
				wantTogether(w, next...)
				w.WantQuiet()
			})
		})
	}
}

func TestResetBreaksOnceAndChangesTheNumber(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		a, b := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		x := arriving(barrier.New(a, "orders", 2), bg)
		if i, err := barrier.New(b, "orders", 3).Await(bg); i != -1 || err == nil || !strings.Contains(err.Error(), "2 parties, not of 3") {
			t.Errorf("another number: %d, %v", i, err)
		}
		wantStill(w, x)
		if err := barrier.New(b, "orders", 3).Reset(bg); err != nil {
			t.Error(err)
		}
		wantBroken(w, x, barrier.BrokenReset, b.ID())
		all := []<-chan arrived{arriving(barrier.New(a, "orders", 3), bg), arriving(barrier.New(b, "orders", 3), bg)}
		wantStill(w, all...)
		wantTogether(w, append(all, arriving(barrier.New(a, "orders", 3), bg))...)
		if err := barrier.New(b, "new", 3).Reset(bg); err != nil {
			t.Error(err)
		}
	})
}

func TestABarrierRefusesWhatItCannotDo(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		await := func(b *barrier.Barrier) error { _, err := b.Await(bg); return err }
		var none context.Context
		_, noContext := barrier.New(c, "orders", 1).Await(none)
		for i, x := range []struct {
			err  error
			says string
		}{
			{await(barrier.New(c, "", 1)), "empty"},
			{await(barrier.New(c, "a{b", 1)), "without a '}'"},
			{await(barrier.New(c, "orders", 0)), "at least 1"},
			{barrier.New(c, "orders", -1).Reset(bg), "at least 1"},
			{noContext, "nil context"},
			{barrier.New(c, "orders", 1).Reset(none), "nil context"},
		} {
			if x.err == nil || !strings.Contains(x.err.Error(), x.says) {
				t.Errorf("%d: %v, want an error that says %q", i, x.err, x.says)
			}
		}
		for range 3 { // alone
			if i, err := barrier.New(c, "orders", 1).Await(bg); i != 0 || err != nil {
				t.Errorf("got %d, %v", i, err)
			}
		}
		done, cancel := context.WithCancel(bg)
		cancel()
		other := arriving(barrier.New(c, "two", 2), bg)
		_, err := barrier.New(c, "two", 2).Await(done)
		w.WantErr(err, context.Canceled, redlatch.ErrBusy)
		wantStill(w, other) // who never arrives breaks nothing
		w.Server.FlushAll()
		wantBroken(w, other, barrier.BrokenGone, "")
	})
}

// fatedBarrier returns a client and what becomes of the attempts of its scripts.
func fatedBarrier(w *locktest.World, decide func(s string, try int) locktest.Fate) (*redlatch.Client, *locktest.Counting) {
	x := &locktest.Counting{}
	d := &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
		x.Mu.Lock()
		x.Tries++
		what := decide(s, x.Tries)
		if what == locktest.Late {
			x.Held = append(x.Held, func() { _, _ = next() })
		}
		x.Mu.Unlock()
		return what.Of(next)
	}}
	return w.Tapped(redlatch.Config{}, d), x
}

func TestALostReplyCountsAnArrivalOnce(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, _ := fatedBarrier(w, func(_ string, try int) locktest.Fate {
			if try%2 == 1 {
				return locktest.ReplyLost
			}
			return locktest.Good
		})
		other := w.Client(redlatch.Config{})
		for range 4 {
			x, y := arriving(barrier.New(c, "orders", 3), bg), arriving(barrier.New(other, "orders", 3), bg)
			time.Sleep(10 * time.Second)
			wantStill(w, x, y)
			z := arriving(barrier.New(c, "orders", 3), bg) // its first reply says that it was the last
			time.Sleep(time.Second)
			wantTogether(w, x, y, z)
		}
		ctx, cancel := context.WithCancel(bg)
		defer cancel()
		x, y := arriving(barrier.New(other, "orders", 3), bg), arriving(barrier.New(c, "orders", 3), ctx)
		time.Sleep(time.Second)
		cancel()
		w.WantErr((<-y).err, context.Canceled)
		wantBroken(w, x, barrier.BrokenLeft, c.ID())
		x = arriving(barrier.New(other, "orders", 2), bg)
		if a := <-x; a.err == nil {
			t.Error("two parties instead of three")
		}
		x = arriving(barrier.New(other, "orders", 3), bg)
		time.Sleep(time.Second)
		if err := barrier.New(c, "orders", 2).Reset(bg); err != nil {
			t.Error(err)
		}
		wantBroken(w, x, barrier.BrokenReset, c.ID())
		wantTogether(w, arriving(barrier.New(other, "orders", 2), bg), arriving(barrier.New(c, "orders", 2), bg))
	})
}

// A request that comes when its generation is long over is counted nowhere, and
// breaks nothing.
func TestALateRequestIsNothingToTheNextGeneration(t *testing.T) {
	for _, script := range []string{"barrier.arrive", "barrier.leave", "barrier.reset", "barrier.poll"} {
		for _, before := range []bool{false, true} {
			t.Run(fmt.Sprint(script, " between ", before), func(t *testing.T) {
				locktest.InFakeTime(t, func(w *locktest.World) {
					n := 0 // requests of the script
					c, x := fatedBarrier(w, func(s string, _ int) locktest.Fate {
						if s == script {
							if n++; n%2 == 1 {
								return locktest.Late
							}
						}
						return locktest.Good
					})
					other := w.Client(redlatch.Config{})
					for range 3 { // a generation that goes, one that is left, one that is reset
						wantTogether(w, arriving(barrier.New(other, "orders", 2), bg), locktest.Later(func() arrived {
							i, err := barrier.New(c, "orders", 2).Await(bg)
							return arrived{index: i, err: err}
						}))
						ctx, cancel := context.WithTimeout(bg, 5*time.Second)
						_, err := barrier.New(c, "orders", 2).Await(ctx)
						w.WantErr(err, context.DeadlineExceeded)
						cancel()
						time.Sleep(time.Second)
						if err := barrier.New(c, "orders", 2).Reset(bg); err != nil {
							t.Error(err)
						}
					}
					if before {
						time.Sleep(time.Hour) // all is forgotten
					}
					y := arriving(barrier.New(other, "orders", 2), bg)
					time.Sleep(time.Second)
					if len(x.Held) == 0 {
						t.Fatal("nothing is late: this test shows nothing")
					}
					x.Arrive()
					time.Sleep(40 * time.Second)
					wantStill(w, y)
					wantTogether(w, y, arriving(barrier.New(other, "orders", 2), bg))
				})
			})
		}
	}
}

// One that gives up while its arrival is on the way is not counted when that
// comes, and breaks nothing by leaving before it was there.
func TestOneThatLeavesBeforeItsArrivalComesNeverArrives(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var slow atomic.Bool
		d := &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "barrier.arrive" && slow.CompareAndSwap(true, false) {
				time.Sleep(2 * time.Second)
			}
			return next()
		}}
		c, other := w.Tapped(redlatch.Config{}, d), w.Client(redlatch.Config{})
		b := barrier.New(c, "orders", 2)
		wantTogether(w, arriving(b, bg), arriving(b, bg))
		x := arriving(barrier.New(other, "orders", 2), bg)
		slow.Store(true)
		ctx, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		_, err := b.Await(ctx)
		w.WantErr(err, context.DeadlineExceeded)
		time.Sleep(10 * time.Second)
		wantStill(w, x)
		wantTogether(w, x, arriving(b, bg))
	})
}

// Many in one process ask once for all, and go on with one answer.
func TestOfManyAtABarrierOneAsks(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		const waiters = 300
		var asked atomic.Int64
		d := &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "barrier.poll" {
				asked.Add(1)
				time.Sleep(time.Millisecond)
			}
			return next()
		}}
		c := w.Tapped(redlatch.Config{}, d)
		b := barrier.New(c, "orders", waiters+1)
		var wg sync.WaitGroup
		for range waiters {
			wg.Go(func() {
				if _, err := b.Await(bg); err != nil {
					t.Error(err)
				}
			})
		}
		time.Sleep(20 * time.Second)
		if n := asked.Load(); n < 8 || n > 18 || d.Subs.Load() != 3 {
			t.Errorf("asked %d times in 20 s, %d subscriptions", n, d.Subs.Load())
		}
		before, start := asked.Load(), time.Now()
		if i, err := barrier.New(w.Client(redlatch.Config{}), "orders", waiters+1).Await(bg); i != 0 || err != nil {
			t.Errorf("the last one got %d, %v", i, err)
		}
		wg.Wait()
		if took := time.Since(start); took > 2*time.Millisecond || asked.Load()-before > 1 {
			t.Errorf("they went on after %v with %d questions", took, asked.Load()-before)
		}
	})
}

// Those that cannot reach the server leave, and the others are told when it
// can be told.
func TestABarrierInAnOutage(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		m := &locktest.Mortal{}
		m.Client = w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(_ string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if m.Dead.Load() {
				return driver.Reply{}, locktest.ErrReplyLost
			}
			return next()
		}})
		other := w.Client(redlatch.Config{})
		x, y := arriving(barrier.New(m.Client, "orders", 3), bg), arriving(barrier.New(other, "orders", 3), bg)
		m.Dead.Store(true)
		time.Sleep(8 * time.Second)
		m.Dead.Store(false) // soon enough
		time.Sleep(5 * time.Second)
		wantStill(w, x, y)
		m.Dead.Store(true)
		w.WantErr((<-x).err, redlatch.ErrUnavailable)
		wantStill(w, y)
		time.Sleep(5 * time.Second)
		m.Dead.Store(false)
		wantBroken(w, y, barrier.BrokenLeft, m.ID())
	})
}

// A client is shut out, because its password was changed. Its caller learns that,
// and leaves as soon as that can be said: one that comes then is not to go on with
// somebody who has gone.
func TestABarrierDoesNotTripWithOneThatWasShutOut(t *testing.T) {
	const refusal = "WRONGPASS invalid username-password pair or user is disabled."
	locktest.InFakeTime(t, func(w *locktest.World) {
		var shut atomic.Bool
		c := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(_ string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if shut.Load() {
				return driver.Reply{}, driver.ServerError(refusal, errors.New(refusal))
			}
			return next()
		}})
		x := arriving(barrier.New(c, "orders", 2), bg)
		time.Sleep(time.Second)
		shut.Store(true)
		if err := (<-x).err; err == nil || !strings.Contains(err.Error(), refusal) {
			t.Errorf("got %v", err)
		}
		time.Sleep(time.Second)
		shut.Store(false)
		time.Sleep(5 * time.Second)
		other := w.Client(redlatch.Config{})
		y := arriving(barrier.New(other, "orders", 2), bg)
		time.Sleep(time.Second)
		wantStill(w, y)
		wantTogether(w, y, arriving(barrier.New(c, "orders", 2), bg))
	})
}

// The end of a generation is told to those who ask late, when others already
// gather for the next one.
func TestASlowPartyLearnsHowItsOwnGenerationEnded(t *testing.T) {
	for _, broken := range []bool{false, true} {
		t.Run(fmt.Sprint("broken ", broken), func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				m, other := w.Mortal(), w.Client(redlatch.Config{})
				slow := arriving(barrier.New(m.Client, "orders", 2), bg)
				m.Dead.Store(true)
				if broken {
					if err := barrier.New(other, "orders", 2).Reset(bg); err != nil {
						t.Error(err)
					}
				} else if i, err := barrier.New(other, "orders", 2).Await(bg); i != 0 || err != nil {
					t.Fatal(i, err)
				}
				next := arriving(barrier.New(other, "orders", 2), bg)
				time.Sleep(50 * time.Second)
				m.Dead.Store(false)
				if broken {
					wantBroken(w, slow, barrier.BrokenReset, other.ID())
				} else if a := <-slow; a.index != 1 || a.err != nil {
					t.Errorf("got %d, %v", a.index, a.err)
				}
				wantStill(w, next)
				wantTogether(w, next, arriving(barrier.New(m.Client, "orders", 2), bg))
			})
		})
	}
}

// Who gives up and comes again is one party, and not two: its own place of before
// would let it pass alone.
func TestWhoComesToABarrierAgainIsNotTakenForTwo(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Tapped(redlatch.Config{}, &locktest.Tap{Notes: true, Hook: func(script string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if script == "barrier.leave" {
				time.Sleep(100 * time.Millisecond) // it is overtaken by what comes next
			}
			return next()
		}})
		for range 20 {
			ctx, cancel := context.WithTimeout(bg, 5*time.Millisecond)
			_, err := barrier.New(c, "orders", 2).Await(ctx)
			cancel()
			w.WantErr(err, redlatch.ErrBusy)
			ctx, cancel = context.WithTimeout(bg, time.Second)
			i, err := barrier.New(c, "orders", 2).Await(ctx)
			cancel()
			if w.WantErr(err, redlatch.ErrBusy); i != -1 {
				t.Fatalf("it passed alone, as number %d", i)
			}
		}
		time.Sleep(time.Second)
		x := arriving(barrier.New(c, "orders", 2), bg)
		wantTogether(w, x, arriving(barrier.New(w.Client(redlatch.Config{}), "orders", 2), bg))
	})
}
