package locks

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/wire"
	"github.com/redlatch/redlatch/observe"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// messages returns a function that returns what has been published on the channel
// of a read-write lock since it was called last.
func messages(w *locktest.World, name string) func() []string {
	return w.Messages(wire.Prefix(wire.RWChannel, name))
}

func TestAReadWriteLockIsWrittenAsRedissonWritesIt(t *testing.T) {
	for name, base := range map[string]string{"orders": "{orders}", "{orders}:7": "{orders}:7"} {
		locktest.InFakeTime(t, func(w *locktest.World) {
			c := w.Client(redlatch.Config{})
			rw := c.ReadWriteLock(name)
			msgs := messages(w, name)
			wr := w.Acquire(bg, rw.Write())
			w.WantFields("written", name, map[string]string{"mode": "write", wr.ID() + ":write": "1"})
			w.Release(wr)
			w.WantNoKeys()
			if got := msgs(); len(got) != 1 || got[0] != "1" {
				t.Errorf("a write release published %q, want 1", got)
			}
			rd := w.Acquire(bg, rw.Read())
			key := base + ":" + rd.ID() + ":rwlock_timeout:1"
			w.WantFields("read", name, map[string]string{"mode": "read", rd.ID(): "1"})
			if v, _ := w.Server.Get(key); v != "1" || w.Server.TTL(key) != 30*time.Second || w.Server.TTL(name) != 30*time.Second {
				t.Errorf("the hold's key has value %q, TTL %v, the lock %v", v, w.Server.TTL(key), w.Server.TTL(name))
			}
			w.Release(rd)
			w.WantNoKeys()
			if got := msgs(); len(got) != 1 || got[0] != "0" {
				t.Errorf("a read release published %q, want 0", got)
			}
		})
	}
}

// A 0 would wake one of the readers that wait in a process of Redisson.
func TestHoweverAWriteEndsItWakesEveryReader(t *testing.T) {
	var turns atomic.Int64
	for name, end := range map[string]func(w *locktest.World, c, other *redlatch.Client){
		"released": func(w *locktest.World, c, _ *redlatch.Client) {
			w.Release(w.Acquire(bg, c.ReadWriteLock("orders").Write()))
		},
		"by turns": func(w *locktest.World, c, _ *redlatch.Client) {
			l := c.ReadWriteLock("orders").Write()
			h := w.Acquire(bg, l)
			next := locktest.Later(func() *redlatch.Hold { return w.Acquire(bg, l) })
			time.Sleep(50 * time.Millisecond) // longer than a quantum
			w.Release(h)
			w.Release(<-next)
		},
		"by force": func(w *locktest.World, _, other *redlatch.Client) {
			w.Server.HSet("orders", "mode", "write", locktest.JavaOwner+":write", "1")
			w.Server.SetTTL("orders", time.Minute)
			if ok, err := admin.ForceRelease(bg, other.ReadWriteLock("orders").Write()); !ok || err != nil {
				w.Errorf("%v, %v", ok, err)
			}
		},
		"given up": func(w *locktest.World, c, other *redlatch.Client) {
			w.Foreigner("orders", locktest.JavaOwner).Read(time.Minute)
			_, err := c.ReadWriteLock("orders").PreferWriters().Write().TryAcquire(bg, 100*time.Millisecond)
			w.WantErr(err, redlatch.ErrBusy)
		},
	} {
		t.Run(name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				c := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
					r, err := next()
					if s == "readwrite.write.yield" && r.Int > 0 {
						turns.Add(1)
					}
					return r, err
				}})
				other := w.Client(redlatch.Config{})
				defer w.Driver().Subscribe("redisson_rwlock:{orders}", false, func(driver.Notice) {})() // somebody waits
				msgs := messages(w, "orders")
				synctest.Wait()
				end(w, c, other)
				got := msgs()
				for _, m := range got {
					if m != "1" {
						t.Errorf("published %q, want 1 each time", got)
					}
				}
				if len(got) == 0 || name == "by turns" && turns.Load() == 0 {
					t.Errorf("published %q, %d turns: nothing is tested", got, turns.Load())
				}
			})
		})
	}
}

func TestNobodyReadsWhileSomebodyWrites(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, other := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		wr := w.Acquire(bg, c.ReadWriteLock("orders").Write())
		for _, c := range []*redlatch.Client{c, other} {
			for _, l := range []*redlatch.Lock{c.ReadWriteLock("orders").Read(), c.ReadWriteLock("orders").Write()} {
				var busy *redlatch.BusyError
				if _, err := l.TryAcquire(bg, 0); !errors.As(err, &busy) || busy.Owner != wr.ID() {
					t.Errorf("Try: %v, want busy with %s", err, wr.ID())
				}
			}
		}
		w.Release(wr)
		rd := w.Acquire(bg, c.ReadWriteLock("orders").Read())
		rd2 := w.Acquire(bg, other.ReadWriteLock("orders").Read())
		for _, c := range []*redlatch.Client{c, other} {
			if _, err := c.ReadWriteLock("orders").Write().TryAcquire(bg, 0); !errors.Is(err, redlatch.ErrBusy) {
				t.Errorf("Try to write: %v", err)
			}
		}
		w.Release(rd)
		if _, err := c.ReadWriteLock("orders").Write().TryAcquire(bg, 0); !errors.Is(err, redlatch.ErrBusy) {
			t.Errorf("Try to write: %v", err)
		}
		w.Release(rd2)
		w.Release(w.Acquire(bg, c.ReadWriteLock("orders").Write()))
		w.WantNoKeys()
	})
}

func TestReadersOfOneProcessShareOneRemoteHold(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		l := c.ReadWriteLock("orders").Read()
		first := w.Acquire(bg, l)
		w.Server.SetError("LOADING the second reader does not ask")
		var holds []*redlatch.Hold
		for range 10_000 {
			holds = append(holds, w.Acquire(bg, l))
		}
		w.Server.SetError("")
		w.WantFields("10,001 readers", "orders", map[string]string{"mode": "read", first.ID(): "1"})
		if n := len(w.Keys()); n != 2 {
			t.Errorf("%d keys: %q", n, w.Keys())
		}
		time.Sleep(time.Minute)
		w.Release(first)
		for _, h := range holds {
			if h.Err() != nil {
				t.Fatal(h.Err())
			}
			w.Release(h)
		}
		w.WantNoKeys()
	})
}

func TestARenewalKeepsTheLockAndTheNumberedKeys(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		h := w.Acquire(bg, c.ReadWriteLock("orders").Read())
		key := wire.ReadTimeout("orders", h.ID(), 1)
		for range 60 {
			time.Sleep(5 * time.Second)
			if a, b := w.Server.TTL("orders"), w.Server.TTL(key); a < 15*time.Second || b < a {
				t.Fatalf("the lock lives for %v, its key for %v", a, b)
			}
		}
		w.Release(h)
		w.WantNoKeys()
	})
}

// The server evicted the key that proves that the reader lives: Redisson's next
// read-unlock would take the lock away.
func TestARenewalBringsBackANumberedKey(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		h := w.Acquire(bg, c.ReadWriteLock("orders").Read())
		key := wire.ReadTimeout("orders", h.ID(), 1)
		w.Server.Del(key)
		time.Sleep(11 * time.Second)
		if !w.Server.Exists(key) {
			t.Error("it is gone")
		}
		w.Release(h)
	})
}

func TestADeadClientsReadersGoWithTheirLease(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		dead := w.Client(redlatch.Config{})
		w.Acquire(bg, dead.ReadWriteLock("orders").Read())
		live := w.Client(redlatch.Config{})
		h := w.Acquire(bg, live.ReadWriteLock("orders").Read())
		_ = dead.Close()
		time.Sleep(time.Minute) // the live reader keeps the lock, not the dead one's hold
		w.Release(h)
		if _, err := live.ReadWriteLock("orders").Write().TryAcquire(bg, 0); err != nil {
			t.Errorf("a dead reader keeps a writer out: %v", err)
		}
	})
}

func TestALongDeadReaderShortensTheLockAgain(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		long, c := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		a := w.Acquire(bg, locktest.With(long.ReadWriteLock("orders").Read(), redlatch.Lease(time.Hour)))
		w.Acquire(bg, locktest.With(c.ReadWriteLock("orders").Read(), redlatch.Lease(10*time.Second)))
		w.Release(a)
		if ttl := w.Server.TTL("orders"); ttl > 10*time.Second {
			t.Errorf("the lock lives for another %v, its only reader for 10s", ttl)
		}
	})
}

func TestEachReadHoldHasItsOwnLease(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var lost atomic.Int64
		start := time.Now()
		c := w.Client(redlatch.Config{}, observe.Hooks{Lost: func(observe.LostEvent) { lost.Add(1) }})
		l := c.ReadWriteLock("orders").Read()
		kept := w.Acquire(bg, l)
		short := w.Acquire(bg, locktest.With(l, redlatch.Lease(5*time.Second)))
		long := w.Acquire(bg, locktest.With(l, redlatch.Lease(time.Minute)))
		if d := time.Until(short.Expires()); d > 4900*time.Millisecond || d < 4500*time.Millisecond {
			t.Errorf("the short hold expires in %v", d)
		}
		if d, ttl := time.Until(long.Expires()), w.Server.TTL("orders"); d < 58*time.Second || d > ttl {
			t.Errorf("the long hold expires in %v, the lock in %v", d, ttl)
		}
		<-short.Context().Done()
		w.WantErr(context.Cause(short.Context()), redlatch.ErrLost)
		w.WantErr(short.Release(bg), redlatch.ErrLost)
		if d := time.Since(start); d > 5*time.Second {
			t.Errorf("the short hold ended after %v", d)
		}
		if kept.Err() != nil || long.Err() != nil {
			t.Error("others ended with it")
		}
		<-long.Context().Done()
		w.WantErr(long.Err(), redlatch.ErrLost)
		if d := time.Since(start); d > time.Minute || d < 58*time.Second {
			t.Errorf("the long hold ended after %v", d)
		}
		if kept.Err() != nil {
			t.Error("the watchdog's hold ended with it")
		}
		w.WantErr(long.Release(bg), redlatch.ErrLost)
		w.Release(kept)
		w.WantNoKeys()
		synctest.Wait()
		if lost.Load() != 2 {
			t.Errorf("%d holds were lost", lost.Load())
		}
	})
}

func TestAReadHoldOfALeaseCanBeExtended(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		l := c.ReadWriteLock("orders").Read()
		a := w.Acquire(bg, locktest.With(l, redlatch.Lease(5*time.Second)))
		b := w.Acquire(bg, locktest.With(l, redlatch.Lease(5*time.Second)))
		if err := a.Extend(bg, time.Minute); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if a.Err() != nil || b.Err() == nil {
			t.Errorf("extended: %v, not extended: %v", a.Err(), b.Err())
		}
		w.WantErr(b.Release(bg), redlatch.ErrLost)
		w.Release(a)
		w.WantNoKeys()
	})
}

func TestMaxHoldBoundsEachReadHold(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{MaxHold: time.Minute})
		l := c.ReadWriteLock("orders").Read()
		a := w.Acquire(bg, l)
		time.Sleep(40 * time.Second)
		b := w.Acquire(bg, l)
		time.Sleep(30 * time.Second)
		if a.Err() == nil || b.Err() != nil {
			t.Errorf("after 70s: %v, after 30s: %v", a.Err(), b.Err())
		}
		w.WantErr(a.Release(bg), redlatch.ErrLost)
		w.Release(b)
		w.WantNoKeys()
	})
}

func TestLocalWritersAndReadersAreFairToOneAnother(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		rw := c.ReadWriteLock("orders")
		ctx, cancel := context.WithTimeout(bg, 10*time.Second)
		defer cancel()
		var wg sync.WaitGroup
		count := [2]int{}
		var mu sync.Mutex
		for i := range 40 {
			wg.Go(func() {
				l := rw.Read()
				if i%4 == 0 {
					l = rw.Write()
				}
				for {
					h, err := l.Acquire(ctx)
					if err != nil {
						return
					}
					time.Sleep(3 * time.Millisecond)
					mu.Lock()
					if i%4 == 0 {
						count[1]++
					} else {
						count[0]++
					}
					mu.Unlock()
					w.Release(h)
				}
			})
		}
		wg.Wait()
		t.Logf("reads, writes: %v", count)
		if count[0] < 1000 || count[1] < 300 {
			t.Errorf("reads, writes in 10s: %v", count)
		}
		w.WantNoKeys()
	})
}

func TestARemoteWriterGetsInWithinOneDrainUnderAStormOfReaders(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, other := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		ctx, cancel := context.WithCancel(bg)
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				for ctx.Err() == nil {
					h, err := c.ReadWriteLock("orders").Read().Acquire(ctx)
					if err != nil {
						return
					}
					time.Sleep(time.Duration(10+i) * time.Millisecond)
					w.Release(h)
				}
			})
		}
		time.Sleep(time.Second)
		for range 20 {
			start := time.Now()
			h := w.Acquire(bg, other.ReadWriteLock("orders").Write())
			if d := time.Since(start); d > 100*time.Millisecond {
				t.Errorf("a writer waited for %v; readers hold for 60ms at most", d)
			}
			w.Release(h)
			time.Sleep(50 * time.Millisecond)
		}
		cancel()
		wg.Wait()
		w.WantNoKeys()
	})
}

func TestAForceReleaseOfReadersLeavesWritersAlone(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, other := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		rw, orw := c.ReadWriteLock("orders"), other.ReadWriteLock("orders")
		synctest.Wait()
		wr := w.Acquire(bg, rw.Write())
		if ok, err := admin.ForceRelease(bg, orw.Read()); ok || err != nil || wr.Err() != nil {
			t.Fatalf("readers released: %v, %v; the writer: %v", ok, err, wr.Err())
		}
		rd := w.Acquire(wr.Context(), rw.Read())
		if ok, err := admin.ForceRelease(bg, orw.Read()); ok || err != nil || wr.Err() != nil || rd.Err() != nil {
			t.Fatalf("readers released: %v, %v; the writer: %v, what it reads: %v", ok, err, wr.Err(), rd.Err())
		}
		w.Release(rd)
		info, err := admin.LockInfo(bg, orw.Write())
		if err != nil || len(info.Holders) != 1 || info.Holders[0].Owner != wr.ID() || info.Kind != redlatch.KindReadWrite || info.Holders[0].Mode != "write" {
			t.Errorf("%+v, %v", info, err)
		}
		if ok, err := admin.ForceRelease(bg, orw.Write()); !ok || err != nil || wr.Err() == nil {
			t.Fatalf("the writer released: %v, %v; %v", ok, err, wr.Err())
		}
		synctest.Wait()
		w.WantNoKeys()
		a, b := w.Acquire(bg, rw.Read()), w.Acquire(bg, rw.Read())
		if ok, err := admin.ForceRelease(bg, orw.Write()); ok || err != nil || a.Err() != nil {
			t.Fatalf("the writer released: %v, %v; a reader: %v", ok, err, a.Err())
		}
		if info, err := admin.LockInfo(bg, orw.Read()); err != nil || len(info.Holders) != 1 || info.Holders[0].Count != 1 || info.Holders[0].Owner != a.ID() {
			t.Errorf("%+v, %v", info, err)
		}
		if ok, err := admin.ForceRelease(bg, orw.Read()); !ok || err != nil || a.Err() == nil || b.Err() == nil {
			t.Fatalf("readers released: %v, %v; %v, %v", ok, err, a.Err(), b.Err())
		}
		synctest.Wait()
		w.WantNoKeys()
	})
}

func TestAWriterMayHaveAToken(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		rw := w.Client(redlatch.Config{}).ReadWriteLock("orders", redlatch.Fenced())
		for i := range 3 {
			h := w.Acquire(bg, rw.Write())
			if h.Token() != int64(i+1) {
				t.Errorf("token %d, want %d", h.Token(), i+1)
			}
			w.Release(h)
		}
		h := w.Acquire(bg, rw.Read())
		if h.Token() != 0 {
			t.Errorf("a reader got the token %d", h.Token())
		}
		w.Release(h)
	})
}

// Readers of several processes take turns so that somebody always reads.
func TestAPreferredWriterGetsInAmongManyReadingProcesses(t *testing.T) {
	for _, prefer := range []bool{true, false} {
		locktest.InFakeTime(t, func(w *locktest.World) {
			lockOf := func() *redlatch.ReadWriteLock {
				rw := w.Client(redlatch.Config{}).ReadWriteLock("orders")
				if prefer {
					rw = rw.PreferWriters()
				}
				return rw
			}
			ctx, cancel := context.WithCancel(bg)
			var wg sync.WaitGroup
			for p := range 5 {
				rw := lockOf()
				for i := range 5 {
					wg.Go(func() {
						for ctx.Err() == nil {
							h, err := rw.Read().Acquire(ctx)
							if err != nil {
								return
							}
							time.Sleep(time.Duration(10+7*i+3*p) * time.Millisecond)
							w.Release(h)
						}
					})
				}
			}
			time.Sleep(time.Second)
			wr := lockOf()
			var longest time.Duration
			n := 20
			if !prefer {
				n = 1 // to see that the story would not end by itself
			}
			for range n {
				start := time.Now()
				h, err := wr.Write().TryAcquire(bg, 2*time.Second)
				longest = max(longest, time.Since(start))
				if err == nil {
					w.Release(h)
				}
				time.Sleep(50 * time.Millisecond)
			}
			t.Logf("prefer %v: a writer waited for %v", prefer, longest)
			if prefer && longest > 150*time.Millisecond {
				t.Errorf("a writer waited for %v; readers hold for 50ms at most", longest)
			}
			cancel()
			wg.Wait()
			synctest.Wait()
			w.WantNoKeys()
		})
	}
}

// A wish that is given up lets the readers in at once.
func TestAPreferredWriterThatGivesUpWakesTheReaders(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		a, b, c := w.Client(redlatch.Config{}), w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		long := w.Acquire(bg, a.ReadWriteLock("orders").PreferWriters().Read())
		wc := locktest.Later(func() error {
			_, err := b.ReadWriteLock("orders").PreferWriters().Write().TryAcquire(bg, 7*time.Second)
			return err
		})
		time.Sleep(time.Second)
		start := time.Now()
		w.Release(w.Acquire(bg, c.ReadWriteLock("orders").Read())) // without preference
		if time.Since(start) > 0 {
			t.Error("it waited")
		}
		w.Release(w.Acquire(bg, c.ReadWriteLock("orders").PreferWriters().Read()))
		if d := time.Since(start); d < 5900*time.Millisecond || d > 6100*time.Millisecond {
			t.Errorf("a reader waited for %v", d)
		}
		w.WantErr(<-wc, redlatch.ErrBusy)
		w.Release(long)
		w.WantNoKeys()
	})
}

// The request that takes an announcement back was lost, and all readers waited for
// its TTL, of five seconds.
func TestAnAnnouncementIsTakenBackAlthoughARequestIsLost(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		lost := 0
		c := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(s string, args []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "readwrite.write.intent" && args[1] == "0" && lost == 0 {
				lost++
				return driver.Reply{}, locktest.ErrReplyLost
			}
			return next()
		}})
		other := w.Client(redlatch.Config{}).ReadWriteLock("orders").PreferWriters().Read()
		long := w.Acquire(bg, other)
		_, err := c.ReadWriteLock("orders").PreferWriters().Write().TryAcquire(bg, 100*time.Millisecond)
		w.WantErr(err, redlatch.ErrBusy)
		w.Release(long)
		start := time.Now()
		w.Release(w.Acquire(bg, other))
		if d := time.Since(start); d > 100*time.Millisecond || lost != 1 {
			t.Errorf("a reader waited for %v, with %d requests lost", d, lost)
		}
		w.WantNoKeys()
	})
}

// Its announcement is in flight when its context ends.
func TestAPreferredWriterReturnsWhenItsContextEnds(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		slow := &locktest.Tap{Hook: func(s string, args []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "readwrite.write.intent" && args[1] != "0" {
				time.Sleep(2 * time.Second)
			}
			return next()
		}}
		c, other := w.Tapped(redlatch.Config{}, slow), w.Client(redlatch.Config{})
		rd := w.Acquire(bg, other.ReadWriteLock("orders").Read())
		l := c.ReadWriteLock("orders").PreferWriters().Write()
		returns := func(when string, ctx context.Context, want error, wait time.Duration) {
			start := time.Now()
			_, err := l.TryAcquire(ctx, wait)
			w.WantErr(err, want)
			if d := time.Since(start); d != 100*time.Millisecond {
				t.Errorf("%s: after %v", when, d)
			}
			time.Sleep(3 * time.Second)
			if keys := w.Keys(); len(keys) != 2 {
				t.Errorf("%s: three seconds later there are keys %q", when, keys)
			}
		}
		ctx, cancel := context.WithTimeout(bg, 100*time.Millisecond)
		defer cancel()
		returns("its context ends", ctx, context.DeadlineExceeded, time.Hour)
		returns("its time is over", bg, redlatch.ErrBusy, 100*time.Millisecond)
		time.AfterFunc(100*time.Millisecond, func() { _ = c.Close() })
		returns("its client closes", bg, redlatch.ErrClosed, time.Hour)
		w.Release(rd)
	})
}
