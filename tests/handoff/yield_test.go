package handoff

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/redisson"
	"github.com/redlatch/redlatch/semaphore"
	"github.com/redlatch/redlatch/tests/internal/drivers"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// owed returns how many others go first, as an error of Try says.
func owed(err error) int {
	if busy := (*redlatch.BusyError)(nil); errors.As(err, &busy) {
		return busy.Owed
	}
	return 0
}

func TestTrySaysThatOthersGoFirst(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, far := w.Client(redlatch.Config{}), farClient(w, 8*time.Millisecond, redlatch.Config{})
		w.Semaphore(c, 1)
		s := semaphore.New(c, locktest.SemaphoreName, 0)
		rw := c.ReadWriteLock("accounts")
		permits := semaphore.NewExpirable(c, "desks", 0)
		w.OK(permits.SetPermits(bg, 1))
		for name, x := range map[string]struct {
			take    func() (func(), error)
			waiting func(context.Context) (func(), error)
		}{
			"lock":  {trying(w, c.Lock("orders")), patient(w, far.Lock("orders"))},
			"group": {trying(w, redisson.GroupLock(c, "stock", []string{"1"})), patient(w, redisson.GroupLock(far, "stock", []string{"1"}))},
			"write": {trying(w, rw.Write()), patient(w, far.ReadWriteLock("accounts").Write())},
			"read":  {trying(w, rw.Read()), patient(w, far.ReadWriteLock("accounts").Write())},
			"permit": {
				func() (func(), error) {
					p, err := permits.TryAcquire(bg, 1, 0)
					return func() { w.OK(p.Release(bg)) }, err
				},
				func(ctx context.Context) (func(), error) {
					p, err := semaphore.NewExpirable(far, "desks", 0).Acquire(ctx, 1)
					return func() { w.OK(p.Release(bg)) }, err
				},
			},
			"semaphore": {
				func() (func(), error) { return func() { w.OK(s.Release(bg, 1)) }, s.TryAcquire(bg, 1, 0) },
				func(ctx context.Context) (func(), error) {
					far := semaphore.New(far, locktest.SemaphoreName, 0)
					return func() { w.OK(far.Release(bg, 1)) }, far.Acquire(ctx, 1)
				},
			},
		} {
			release, err := x.take()
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			ctx, cancel := context.WithCancel(bg)
			var wg sync.WaitGroup
			wg.Go(func() {
				if release, err := x.waiting(ctx); err == nil {
					release()
				}
			})
			time.Sleep(time.Second)
			release()
			_, err = x.take()
			if owed(err) != 1 || !errors.Is(err, redlatch.ErrBusy) || !strings.Contains(err.Error(), "others that wait go first") {
				t.Errorf("%s: %v", name, err)
			}
			wg.Wait()
			time.Sleep(100 * time.Millisecond)
			if release, err = x.take(); err != nil {
				t.Errorf("%s, after the other's turn: %v", name, err)
			} else {
				release()
			}
			cancel()
		}
	})
}

func trying(w *locktest.World, l *redlatch.Lock) func() (func(), error) {
	return func() (func(), error) {
		h, err := l.TryAcquire(bg, 0)
		return func() { w.Release(h) }, err
	}
}

func patient(w *locktest.World, l *redlatch.Lock) func(context.Context) (func(), error) {
	return func(ctx context.Context) (func(), error) {
		h, err := l.Acquire(ctx)
		return func() { w.Release(h) }, err
	}
}

// Nobody listens: then nothing is owed, and nothing is subscribed to.
func TestAReleaseThatNobodyListensToLeavesNothing(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		d := &locktest.Tap{}
		c := w.Tapped(redlatch.Config{}, d)
		w.Semaphore(c, 1)
		w.Release(w.Acquire(bg, c.Lock("orders"))) // from now on others may ask the client to let go
		idle := d.Subs.Load()
		for range 3 {
			for _, x := range []contested{plainContested, groupContested, writeContested, readContested, semaphoreContested, permitContested} {
				start := time.Now()
				for range 100 {
					release, err := x.by(c)(bg)
					w.OK(err)
					w.OK(release())
				}
				if d := time.Since(start); d > 0 {
					t.Errorf("%s: a pause of %v for nobody", x.name, d)
				}
			}
			if n := d.Subs.Load(); n != idle {
				t.Errorf("%d subscriptions, %d before", n, idle)
			}
		}
	})
}

// Who subscribes to a pattern hears each release and waits for nothing. A user
// that must not ask who listens cannot be told that, but everything works.
func TestWhoListensToAPatternIsNoWaiter(t *testing.T) {
	locktest.OnRealServers(t, func(t *testing.T, s *testserver.Server) {
		s.MustDo("ACL", "SETUSER", "default", "+psubscribe", "allchannels")
		sub := locktest.RawGoredis(t, s).PSubscribe(bg, "redisson_*")
		t.Cleanup(func() { _ = sub.Close() })
		if _, err := sub.Receive(bg); err != nil {
			t.Fatal(err)
		}
		c := locktest.ClientOf(t, drivers.Goredis.Open(t, drivers.Single(s.Addr())), redlatch.Config{})
		w := &locktest.World{T: t}
		if _, err := semaphore.New(c, locktest.SemaphoreName, 0).TrySetPermits(bg, 1); err != nil {
			t.Fatal(err)
		}
		again := map[string]func() (func(), error){
			"lock":  trying(w, c.Lock("orders")),
			"group": trying(w, redisson.GroupLock(c, "stock", []string{"1"})),
			"write": trying(w, c.ReadWriteLock("accounts").Write()),
			"semaphore": func() (func(), error) {
				s := semaphore.New(c, locktest.SemaphoreName, 0)
				return func() { w.OK(s.Release(bg, 1)) }, s.TryAcquire(bg, 1, 0)
			},
		}
		for name, take := range again {
			for range 10 {
				release, err := take()
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				release()
			}
		}
		s.MustDo("ACL", "SETUSER", "default", "-pubsub")
		for name, take := range again {
			release, err := take()
			if err != nil {
				t.Fatalf("%s, without the right to PUBSUB: %v", name, err)
			}
			release()
			if release, err = take(); err == nil { // else it is taken for a waiter
				release()
			} else if owed(err) != 1 {
				t.Errorf("%s, without the right to PUBSUB: %v", name, err)
			}
		}
	})
}

// In a cluster with classic Pub/Sub nobody is seen who listens at another node.
func TestInAClusterAPauseIsMadeOnceASecondForThoseUnseen(t *testing.T) {
	for name, x := range map[string]struct {
		cluster     bool
		messages    redlatch.PubSub
		least, most int64
	}{
		"cluster, classic": {true, redlatch.PubSubClassic, 4, 6},
		"cluster, auto":    {true, redlatch.PubSubAuto, 4, 6}, // the embedded server does not know sharded Pub/Sub
		"alone":            {false, redlatch.PubSubClassic, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			for _, of := range []contested{plainContested, groupContested, writeContested, readContested, semaphoreContested, permitContested} {
				locktest.InFakeTime(t, func(w *locktest.World) {
					c := w.Tapped(redlatch.Config{Redisson: redlatch.Redisson{PubSub: x.messages}}, &locktest.Tap{Cluster: x.cluster})
					w.Semaphore(c, 1)
					ctx, cancel := context.WithTimeout(bg, 5500*time.Millisecond)
					defer cancel()
					var pauses atomic.Int64
					loop(w, ctx, c, of, 20*time.Millisecond, 0, func(d time.Duration) {
						if d >= 4*time.Millisecond {
							pauses.Add(1)
						}
					})
					if n := pauses.Load(); n < x.least || n > x.most {
						t.Errorf("%s: %d pauses in 5.5 s, want %d to %d", of.name, n, x.least, x.most)
					}
				})
			}
		})
	}
}

// A reader that only tries was told of turns that others had taken long ago, if
// the readers with whom it would have waited had once made a pause.
func TestAReaderThatTriesIsToldWhyTheLockIsBusyNow(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, far := w.Client(redlatch.Config{}), farClient(w, 8*time.Millisecond, redlatch.Config{})
		read := c.ReadWriteLock("orders").Read()
		h := w.Acquire(bg, read)
		other := locktest.Acquiring(far.ReadWriteLock("orders").Write())
		time.Sleep(time.Second)
		w.Release(h)
		waiting := locktest.Acquiring(read) // makes a pause first
		time.Sleep(time.Millisecond)
		if _, err := read.TryAcquire(bg, 0); owed(err) != 1 {
			t.Errorf("during the pause: %v", err)
		}
		held := <-other
		w.OK(held.Err)
		time.Sleep(time.Second)
		if _, err := read.TryAcquire(bg, 0); err == nil || owed(err) != 0 {
			t.Errorf("while another writes: %v", err)
		}
		w.Release(held.Hold)
		x := <-waiting
		w.OK(x.Err)
		w.Release(x.Hold)
	})
}
