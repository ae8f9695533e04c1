package redlatch_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/barrier"
	"github.com/redlatch/redlatch/internal/bridge"
	"github.com/redlatch/redlatch/internal/claim"
	"github.com/redlatch/redlatch/internal/holdctx"
	"github.com/redlatch/redlatch/internal/puppet"
	"github.com/redlatch/redlatch/latch"
	"github.com/redlatch/redlatch/ratelimit"
	"github.com/redlatch/redlatch/redisson"
	"github.com/redlatch/redlatch/semaphore"
)

// claimsOf yields what a client tells who asks.
func claimsOf(c *redlatch.Client) iter.Seq[claim.Claim] {
	return func(yield func(claim.Claim) bool) {
		redlatch.EachClaim(c, func(x claim.Claim, of context.Context) bool {
			x.Under = holdctx.OwnersAbove(of)
			return yield(x)
		})
	}
}

// shown returns the claims of a client, holds first.
func shown(c *redlatch.Client) (holds, waits []claim.Claim) {
	synctest.Wait()
	for x := range claimsOf(c) {
		if x.Waits {
			waits = append(waits, x)
		} else {
			holds = append(holds, x)
		}
	}
	return holds, waits
}

func inThisFile(site string) bool { return strings.Contains(site, "claims_test.go:") }

// A waitee is something that can be held and waited for.
type waitee struct {
	kind    redlatch.Kind
	mode    string
	acquire func(ctx context.Context, wait time.Duration) (release func(), err error)
}

func lockWaitee(kind redlatch.Kind, mode string, l *redlatch.Lock) waitee {
	return waitee{kind, mode, func(ctx context.Context, wait time.Duration) (func(), error) {
		h, err := l.TryAcquire(ctx, wait)
		if err != nil {
			return nil, err
		}
		return func() { _ = h.Release(context.Background()) }, nil
	}}
}

func waitees(c *redlatch.Client, opts ...redlatch.HoldOption) map[string]waitee {
	var plain []redlatch.PlainOption
	var every []redlatch.LockOption
	for _, o := range opts {
		plain, every = append(plain, o), append(every, o)
	}
	rw := c.ReadWriteLock("x", every...)
	return map[string]waitee{
		"lock":   lockWaitee(redlatch.KindLock, "", c.Lock("x", plain...)),
		"spin":   lockWaitee(redlatch.KindLock, "", redisson.SpinLock(c, "x", redisson.Constant(time.Second), plain...)),
		"fenced": lockWaitee(redlatch.KindFenced, "", c.Lock("x", append(plain, redlatch.Fenced())...)),
		"fair":   lockWaitee(redlatch.KindFair, "", c.FairLock("x", every...)),
		"group":  lockWaitee(redlatch.KindGroup, "", redisson.GroupLock(c, "x", []string{"a", "b"}, every...)),
		"write":  lockWaitee(redlatch.KindReadWrite, "write", rw.Write()),
		"read":   lockWaitee(redlatch.KindReadWrite, "read", rw.Read()),
	}
}

func lockTypes() []string {
	return []string{"lock", "spin", "fenced", "fair", "group", "write", "read"}
}

// What is held and waited for could not be told from what is not, or from another
// type's.
func TestALockThatIsHeldOrWaitedForIsShownAsWhatItIs(t *testing.T) {
	for _, typ := range lockTypes() {
		t.Run(typ, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, p := asked(t, redlatch.Config{})
				x := waitees(c, redlatch.Lease(time.Minute))[typ]
				other, err := c.Lock("other").Acquire(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				began := time.Now()
				p.Give("x", puppet.Stranger)
				done := make(chan func(), 1)
				go func() {
					release, err := x.acquire(other.Context(), time.Hour)
					if err != nil {
						t.Error(err)
						release = func() {}
					}
					done <- release
				}()
				time.Sleep(3 * time.Second)
				holds, waits := shown(c)
				if len(holds) != 1 || len(waits) != 1 {
					t.Fatalf("held %+v, waited for %+v", holds, waits)
				}
				w := waits[0]
				if w.Name != "x" || redlatch.Kind(w.Kind) != x.kind || w.Mode != x.mode || !w.Since.Equal(began) || !w.Until.Equal(began.Add(time.Hour)) || !inThisFile(w.Site.String()) ||
					!slices.Equal(w.Under, []string{other.ID()}) || w.Renewed || w.Rest() != 0 {
					t.Errorf("waits: %+v at %v", w, w.Site)
				}
				if got := c.Stats(); got.Holds != 1 || got.Waiters != 1 {
					t.Errorf("%+v", got)
				}
				p.Give("x")
				release := <-done
				got := time.Now()
				holds, waits = shown(c)
				i := slices.IndexFunc(holds, func(h claim.Claim) bool { return h.Name == "x" })
				if len(holds) != 2 || len(waits) != 0 || i < 0 {
					t.Fatalf("held %+v, waited for %+v", holds, waits)
				}
				h := holds[i]
				if redlatch.Kind(h.Kind) != x.kind || h.Mode != x.mode || h.Since.After(got) || h.Since.Before(got.Add(-time.Second)) || h.Until.Sub(h.Since) < 50*time.Second || h.Until.Sub(h.Since) > time.Minute ||
					h.Renewed || h.Count != 1 || !inThisFile(h.Site.String()) || h.Owner == "" || h.Under != nil || (h.Token != 0) != (typ == "fenced") {
					t.Errorf("held: %+v at %v", h, h.Site)
				}
				if h := holds[1-i]; h.Owner != other.ID() || !h.Renewed || !h.Until.Equal(other.Expires()) {
					t.Errorf("held: %+v", h)
				}
				release()
				if err := other.Release(t.Context()); err != nil {
					t.Error(err)
				}
				if holds, waits := shown(c); len(holds)+len(waits) != 0 {
					t.Errorf("still held %+v, waited for %+v", holds, waits)
				}
			})
		})
	}
}

// Those who wait for their own process stand somewhere else than those who wait
// for others.
func TestThoseWhoWaitForTheirOwnProcessAreShown(t *testing.T) {
	for _, typ := range lockTypes() {
		t.Run(typ, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, _ := asked(t, redlatch.Config{})
				x := waitees(c)[typ]
				first := x
				if typ == "read" { // readers do not wait for one another
					first = waitees(c)["write"]
				}
				release, err := first.acquire(t.Context(), time.Hour)
				if err != nil {
					t.Fatal(err)
				}
				const n = 5
				var wg sync.WaitGroup
				for i := range n {
					wg.Go(func() {
						ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
						defer cancel()
						if i%2 == 0 {
							cancel()
							ctx, cancel = context.WithCancel(t.Context())
							time.AfterFunc(10*time.Second, cancel)
						}
						if _, err := x.acquire(ctx, time.Hour); !errors.Is(err, redlatch.ErrBusy) {
							t.Errorf("%v", err)
						}
					})
				}
				for at, want := range map[time.Duration]int{3 * time.Second: n} {
					time.Sleep(at)
					if holds, waits := shown(c); len(holds) != 1 || len(waits) != want {
						t.Errorf("%d held, %d waited for, want 1 and %d: %+v", len(holds), len(waits), want, waits)
					}
				}
				time.Sleep(17 * time.Second)
				if _, waits := shown(c); len(waits) != n/2 {
					t.Errorf("%d waited for after some have left, want %d: %+v", len(waits), n/2, waits)
				}
				wg.Wait()
				if _, waits := shown(c); len(waits) != 0 {
					t.Errorf("still waited for: %+v", waits)
				}
				release()
			})
		})
	}
}

// Holds that nest are in the same entry, and those who nest in the same hold wait
// for one another.
func TestSiblingsThatTakeTurnsAreShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := asked(t, redlatch.Config{})
		l := c.Lock("x")
		outer, err := l.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		inner, err := l.Acquire(outer.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(outer.Context())
		left := make(chan error, 1)
		go func() {
			_, err := l.Acquire(ctx)
			left <- err
		}()
		holds, waits := shown(c)
		if len(holds) != 2 || holds[0].Count != 2 || holds[1].Owner != outer.ID() || len(waits) != 1 || !slices.Equal(waits[0].Under, []string{outer.ID()}) {
			t.Errorf("held %+v, waited for %+v", holds, waits)
		}
		cancel()
		if err := <-left; !errors.Is(err, redlatch.ErrBusy) {
			t.Error(err)
		}
		_ = inner.Release(t.Context())
		if holds, waits := shown(c); len(holds) != 1 || holds[0].Count != 1 || len(waits) != 0 {
			t.Errorf("held %+v, waited for %+v", holds, waits)
		}
		_ = outer.Release(t.Context())
	})
}

// What an owner has, all its callers have, whatever their contexts descend from;
// and they wait for one another.
func TestAnOwnersHoldsAreAboveItsCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := asked(t, redlatch.Config{})
		ctx, cancel := context.WithCancel(redlatch.WithOwner(t.Context()))
		defer cancel()
		mine, err := c.Lock("mine").Acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		p.Give("x", puppet.Stranger)
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() { _, _ = c.Lock("x").Acquire(ctx) })
		}
		time.Sleep(time.Second)
		_, waits := shown(c)
		if len(waits) != 2 {
			t.Fatalf("waited for %+v", waits)
		}
		for _, w := range waits {
			if w.Name != "x" || !slices.Equal(w.Under, []string{mine.ID()}) {
				t.Errorf("waits: %+v", w)
			}
		}
		_ = mine.Release(t.Context())
		if _, waits := shown(c); len(waits) != 2 || waits[0].Under != nil {
			t.Errorf("waited for %+v", waits)
		}
		cancel()
		wg.Wait()
		if _, waits := shown(c); len(waits) != 0 {
			t.Errorf("still waited for: %+v", waits)
		}
	})
}

// Callers that want several locks wait for none of them most of the time, as they
// pause between rounds, or stand behind one of their own process that does.
func TestThoseWhoWantSeveralLocksAreShown(t *testing.T) {
	for typ, of := range map[string]func(locks ...*redlatch.Lock) *redlatch.Lock{"MultiLock": redlatch.MultiLock, "RedLock": redlatch.RedLock} {
		t.Run(typ, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, p := asked(t, redlatch.Config{})
				p.Give("x", puppet.Stranger)
				locks := []*redlatch.Lock{c.Lock("x", redlatch.Fenced())}
				if typ == "MultiLock" {
					locks = append(locks, c.Lock("y", redlatch.Fenced()))
				}
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 2)
				for range cap(done) {
					go func() {
						_, err := of(locks...).Acquire(ctx)
						done <- err
					}()
				}
				for range 20 {
					time.Sleep(777 * time.Millisecond)
					_, waits := shown(c)
					if len(waits) < cap(done) || slices.ContainsFunc(waits, func(w claim.Claim) bool { return w.Kind != claim.Fenced }) {
						t.Errorf("waited for %+v", waits)
					}
				}
				cancel()
				for range cap(done) {
					if err := <-done; !errors.Is(err, redlatch.ErrBusy) {
						t.Error(err)
					}
				}
				if holds, waits := shown(c); len(holds)+len(waits) != 0 {
					t.Errorf("still held %+v, waited for %+v", holds, waits)
				}
			})
		})
	}
}

// A synchronizer's callers stand in lines of their own, without a gate.
func TestThoseWhoWaitForASynchronizerAreShown(t *testing.T) {
	for kind, wait := range map[redlatch.Kind]func(c *redlatch.Client, ctx context.Context) error{
		redlatch.KindSemaphore: func(c *redlatch.Client, ctx context.Context) error {
			return semaphore.New(c, "x", 0).TryAcquire(ctx, 3, time.Hour)
		},
		redlatch.KindExpirable: func(c *redlatch.Client, ctx context.Context) error {
			_, err := semaphore.NewExpirable(c, "x", 0).TryAcquire(ctx, 3, time.Hour)
			return err
		},
		redlatch.KindRateLimiter: func(c *redlatch.Client, ctx context.Context) error {
			return ratelimit.New(c, "x", ratelimit.Rate{}).TryAcquire(ctx, 3, time.Hour)
		},
		redlatch.KindLatch: func(c *redlatch.Client, ctx context.Context) error { return latch.New(c, "x").Wait(ctx) },
		redlatch.KindBarrier: func(c *redlatch.Client, ctx context.Context) error {
			_, err := barrier.New(c, "x", 3).Await(ctx)
			return err
		},
	} {
		for _, sited := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/sites=%v", kind, sited), func(t *testing.T) { showsWhoWaits(t, kind, sited, wait) })
		}
	}
}

func showsWhoWaits(t *testing.T, kind redlatch.Kind, sited bool, wait func(c *redlatch.Client, ctx context.Context) error) {
	synctest.Test(t, func(t *testing.T) {
		c, p := asked(t, redlatch.Config{CallSites: sited})
		p.Fill(true)
		other, err := c.Lock("other").Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		const n = 3
		done := make(chan error, n)
		leaving, leave := context.WithCancel(other.Context())
		for i := range n {
			ctx := other.Context()
			if i == 0 {
				ctx = leaving
			}
			go func() { done <- wait(c, ctx) }()
		}
		time.Sleep(time.Second)
		permits, until := 3, began.Add(time.Hour)
		if kind == redlatch.KindLatch || kind == redlatch.KindBarrier {
			permits, until = 0, time.Time{} // only a context bounds them
		}
		_, waits := shown(c)
		if len(waits) != n {
			t.Fatalf("waited for %+v", waits)
		}
		for _, w := range waits {
			if w.Name != "x" || redlatch.Kind(w.Kind) != kind || !w.Since.Equal(began) || !w.Until.Equal(until) || w.Count != permits || (kind == redlatch.KindBarrier) != (w.Owner != "") ||
				!slices.Equal(w.Under, []string{other.ID()}) || (sited || kind == redlatch.KindExpirable) != inThisFile(w.Site.String()) || w.Rest() != 0 {
				t.Errorf("waits: %+v at %v", w, w.Site)
			}
		}
		leave()
		if err := <-done; !errors.Is(err, redlatch.ErrBusy) {
			t.Error(err)
		}
		if _, waits := shown(c); len(waits) != n-1 {
			t.Errorf("waited for %+v after one has left", waits)
		}
		p.Fill(false)
		for range n - 1 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if _, waits := shown(c); len(waits) != 0 {
			t.Errorf("still waited for: %+v", waits)
		}
		_ = other.Release(t.Context())
	})
}

// A permit with a lease is held, and whoever waits below it can keep itself from
// it.
func TestPermitsAreShownUntilTheyAreOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := asked(t, redlatch.Config{})
		s := semaphore.NewExpirable(c, "pool", 0)
		kept, err := s.Acquire(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		leased, err := semaphore.NewExpirable(c, s.Name(), 0, redlatch.Lease(10*time.Second)).Acquire(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		p.Give("x", puppet.Stranger)
		ctx, cancel := context.WithCancel(leased.With(kept.Context()))
		done := make(chan error, 1)
		go func() {
			_, err := c.Lock("x").Acquire(ctx)
			done <- err
		}()
		time.Sleep(time.Second)
		holds, waits := shown(c)
		slices.SortFunc(holds, func(a, b claim.Claim) int { return a.Until.Compare(b.Until) })
		if len(holds) != 2 || len(waits) != 1 || !slices.Equal(waits[0].Under, []string{leased.ID(), kept.ID()}) {
			t.Fatalf("held %+v, waited for %+v", holds, waits)
		}
		for i, want := range []*redlatch.Hold{leased, kept} {
			h := holds[i]
			if h.Name != "pool" || redlatch.Kind(h.Kind) != redlatch.KindExpirable || h.Owner != want.ID() || !h.Until.Equal(want.Expires()) || h.Renewed != (i == 1) || h.Count != 1 || !inThisFile(h.Site.String()) {
				t.Errorf("held: %+v at %v", h, h.Site)
			}
		}
		if got := c.Stats(); got.Permits != 2 || got.Holds != 0 || got.Waiters != 1 {
			t.Errorf("%+v", got)
		}
		cancel()
		if err := <-done; !errors.Is(err, redlatch.ErrBusy) {
			t.Error(err)
		}
		time.Sleep(10 * time.Second)
		if holds, _ := shown(c); len(holds) != 1 || holds[0].Owner != kept.ID() {
			t.Errorf("held %+v, and the lease is over", holds)
		}
		_ = kept.Release(t.Context())
		if got := c.Stats(); got.Permits != 0 {
			t.Errorf("%+v", got)
		}
		_ = leased.Release(t.Context())
	})
}

// Whoever asks while ten thousand wait would keep all of them waiting while he
// copies them.
func TestTenThousandWaitersAreNotCopied(t *testing.T) {
	const n = 10_000
	for typ, wait := range map[string]func(c *redlatch.Client, ctx context.Context) error{
		"lock": func(c *redlatch.Client, ctx context.Context) error { _, err := c.Lock("x").Acquire(ctx); return err },
		"read": func(c *redlatch.Client, ctx context.Context) error {
			_, err := c.ReadWriteLock("x").Read().Acquire(ctx)
			return err
		},
		"semaphore": func(c *redlatch.Client, ctx context.Context) error { return semaphore.New(c, "x", 0).Acquire(ctx, 1) },
		"permits": func(c *redlatch.Client, ctx context.Context) error {
			_, err := semaphore.NewExpirable(c, "x", 0).Acquire(ctx, 1)
			return err
		},
		"limiter": func(c *redlatch.Client, ctx context.Context) error {
			return ratelimit.New(c, "x", ratelimit.Rate{}).Acquire(ctx, 1)
		},
		"latch": func(c *redlatch.Client, ctx context.Context) error { return latch.New(c, "x").Wait(ctx) },
	} {
		t.Run(typ, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, p := asked(t, redlatch.Config{SlowWait: -1})
				p.Fill(true)
				p.Give("x", puppet.Stranger)
				ctx, cancel := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				for range n {
					wg.Go(func() { _ = wait(c, ctx) })
				}
				_, waits := shown(c)
				callers, single := 0, 0
				for _, w := range waits {
					callers += w.Callers()
					if w.Rest() == 0 {
						single++
					}
					if w.Name != "x" || w.Kind == "" {
						t.Fatalf("waits: %+v", w)
					}
				}
				if callers != n || single > 2*claim.Most {
					t.Errorf("%d of %d waiters shown, %d of them one by one", callers, n, single)
				}
				if got := c.Stats().Waiters; got != n {
					t.Errorf("Stats has %d waiters, want %d", got, n)
				}
				cancel()
				wg.Wait()
			})
		})
	}
}

// Whoever asks has all entries and queues in his hands, one after the other, while
// everybody else uses them.
func TestAskingStopsNobody(t *testing.T) {
	c, _ := asked(t, redlatch.Config{})
	over := make(chan struct{})
	var wg, asking sync.WaitGroup
	for i := range 2 {
		asking.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-over:
					return
				default:
				}
				if i == 0 {
					_ = c.Stats()
					continue
				}
				for x := range claimsOf(c) {
					if n%3 == 0 && x.Waits {
						break
					}
					_ = x.Site.String()
				}
			}
		})
	}
	ctx := t.Context()
	for i := range 64 {
		wg.Go(func() {
			x, own := waitees(c), redlatch.WithOwner(ctx)
			for n := range 50 {
				in := ctx
				if i%4 == 0 {
					in = own
				}
				if release, err := x[lockTypes()[(i+n)%7]].acquire(in, time.Millisecond); err == nil {
					release()
				}
				if h, err := c.Lock(fmt.Sprint("own:", i)).Acquire(in); err != nil {
					t.Error(err)
				} else {
					_, _ = c.Lock("x").TryAcquire(h.Context(), 0)
					_ = h.Release(ctx)
				}
				if p, err := semaphore.NewExpirable(c, "pool", 0).Acquire(in, 1); err != nil {
					t.Error(err)
				} else {
					_ = p.Release(ctx)
				}
				if err := semaphore.New(c, "ports", 0).Acquire(in, 1); err != nil {
					t.Error(err)
				} else {
					_ = semaphore.New(c, "ports", 0).Release(ctx, 1)
				}
				_ = ratelimit.New(c, "api", ratelimit.Rate{}).Acquire(in, 1)
				_ = latch.New(c, "latch").Wait(in)
			}
		})
	}
	wg.Wait()
	close(over)
	asking.Wait()
}

// Of renewals that fail nothing would be seen until the hold is lost.
func TestStatsShowAnOutageBeforeItCostsAHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := asked(t, redlatch.Config{WatchdogTimeout: 30 * time.Second})
		h, err := c.Lock("x").Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		leased, err := c.Lock("y", redlatch.Lease(time.Hour)).Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(9 * time.Second)
		if got, want := c.Stats(), (redlatch.Stats{Holds: 2}); got != want {
			t.Errorf("before a renewal: %+v, want %+v", got, want)
		}
		p.Silence(true)
		time.Sleep(6 * time.Second)
		synctest.Wait()
		got := c.Stats()
		if got.RenewalsDue != 1 || !(got.RenewalLag > 0.5 && got.RenewalLag < 0.55) || got.RenewalsFailed == 0 || got.Lost != 0 || got.Holds != 2 {
			t.Errorf("in an outage: %+v", got)
		}
		p.Silence(false)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		failed := c.Stats().RenewalsFailed
		if got, want := c.Stats(), (redlatch.Stats{Holds: 2, RenewalsFailed: failed}); got != want || failed < got.RenewalsFailed {
			t.Errorf("after an outage: %+v, want %+v", got, want)
		}
		p.Silence(true)
		<-h.Context().Done()
		synctest.Wait()
		got = c.Stats()
		if got.Lost != 1 || got.Holds != 1 || got.RenewalsDue != 0 || got.RenewalLag != 0 || got.RenewalsFailed <= failed {
			t.Errorf("after a loss: %+v", got)
		}
		_, _ = h.Release(t.Context()), leased.Release(t.Context())
		if got := c.Stats(); got.Holds != 0 || got.Lost != 1 {
			t.Errorf("in the end: %+v", got)
		}
	})
}

// asked returns a client of a puppet, which closes with the test.
func asked(t *testing.T, cfg redlatch.Config) (*redlatch.Client, *puppet.Puppet) {
	t.Helper()
	p := puppet.New()
	c, err := redlatch.New(p, cfg)
	if err != nil {
		t.Fatal(err)
	}
	bridge.Open(c).Hooks.Start(true) // so that call sites are of use
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c, p
}
