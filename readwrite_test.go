package redlatch_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/wire"
)

// fields returns what Redis shows of a lock, "" for a field that is not there.
func (w *world) fields(name string) map[string]string {
	w.settle()
	m := map[string]string{}
	keys, _ := w.server.HKeys(name)
	for _, k := range keys {
		m[k] = w.server.HGet(name, k)
	}
	return m
}

func (w *world) wantFields(when, name string, want map[string]string) {
	w.Helper()
	got := w.fields(name)
	ok := len(got) == len(want)
	for k, v := range want {
		ok = ok && got[k] == v
	}
	if !ok {
		w.Fatalf("%s: Redis shows %v, want %v", when, got, want)
	}
}

// wantNoKeys checks that no key is left.
func (w *world) wantNoKeys() {
	w.Helper()
	if keys := w.server.Keys(); len(keys) > 0 {
		w.Fatalf("left behind: %q", keys)
	}
}

// messages collects what is published on the channel of a read-write lock.
func (w *world) messages(name string) func() []string {
	sub := w.server.NewSubscriber()
	sub.Subscribe(wire.Prefix(wire.RWChannel, name))
	var mu sync.Mutex
	var all []string
	over := make(chan struct{})
	go func() {
		for {
			select {
			case m := <-sub.Messages():
				mu.Lock()
				all = append(all, m.Message)
				mu.Unlock()
			case <-over:
				return
			}
		}
	}()
	w.Cleanup(func() { close(over); sub.Close() })
	return func() []string {
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		got := all
		all = nil
		return got
	}
}

func TestAReadWriteLockIsWrittenAsRedissonWritesIt(t *testing.T) {
	for name, base := range map[string]string{"orders": "{orders}", "{orders}:7": "{orders}:7"} {
		inFakeTime(t, func(w *world) {
			c := w.client(redlatch.Config{})
			rw := c.ReadWriteLock(name)
			msgs := w.messages(name)
			wr := w.acquire(rw.Write(), bg)
			w.wantFields("written", name, map[string]string{"mode": "write", wr.Owner() + ":write": "1"})
			w.release(wr)
			w.wantNoKeys()
			if got := msgs(); len(got) != 1 || got[0] != "1" {
				t.Errorf("a write release published %q, want 1", got)
			}
			rd := w.acquire(rw.Read(), bg)
			key := base + ":" + rd.Owner() + ":rwlock_timeout:1"
			w.wantFields("read", name, map[string]string{"mode": "read", rd.Owner(): "1"})
			if v, _ := w.server.Get(key); v != "1" || w.server.TTL(key) != 30*time.Second || w.server.TTL(name) != 30*time.Second {
				t.Errorf("the hold's key has value %q, TTL %v, the lock %v", v, w.server.TTL(key), w.server.TTL(name))
			}
			w.release(rd)
			w.wantNoKeys()
			if got := msgs(); len(got) != 1 || got[0] != "0" {
				t.Errorf("a read release published %q, want 0", got)
			}
		})
	}
}

// A 0 would wake one of the readers that wait in a process of Redisson.
func TestHoweverAWriteEndsItWakesEveryReader(t *testing.T) {
	var turns atomic.Int64
	for name, end := range map[string]func(w *world, c, other *redlatch.Client){
		"released": func(w *world, c, _ *redlatch.Client) {
			w.release(w.acquire(c.ReadWriteLock("orders").Write(), bg))
		},
		"by turns": func(w *world, c, _ *redlatch.Client) {
			l := c.ReadWriteLock("orders").Write()
			h := w.acquire(l, bg)
			next := later(func() *redlatch.Hold { return w.acquire(l, bg) })
			time.Sleep(50 * time.Millisecond) // longer than a quantum
			w.release(h)
			w.release(<-next)
		},
		"by force": func(w *world, _, other *redlatch.Client) {
			w.server.HSet("orders", "mode", "write", java+":write", "1")
			w.server.SetTTL("orders", time.Minute)
			if ok, err := other.ReadWriteLock("orders").Write().ForceRelease(bg); !ok || err != nil {
				w.Errorf("%v, %v", ok, err)
			}
		},
		"given up": func(w *world, c, other *redlatch.Client) {
			w.foreigner("orders", java).read(time.Minute)
			_, err := c.ReadWriteLock("orders").PreferWriters().Write().Acquire(bg, redlatch.Wait(100*time.Millisecond))
			w.wantErr(err, redlatch.ErrBusy)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, func(w *world) {
				c := w.tapped(redlatch.Config{}, &tap{hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
					r, err := next()
					if s == "readwrite.write.yield" && r.Int > 0 {
						turns.Add(1)
					}
					return r, err
				}})
				other := w.client(redlatch.Config{})
				defer w.driver().Subscribe("redisson_rwlock:{orders}", false, func(driver.Notice) {})() // somebody waits
				msgs := w.messages("orders")
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
	inFakeTime(t, func(w *world) {
		c, other := w.client(redlatch.Config{}), w.client(redlatch.Config{})
		wr := w.acquire(c.ReadWriteLock("orders").Write(), bg)
		for _, c := range []*redlatch.Client{c, other} {
			for _, l := range []*redlatch.Lock{c.ReadWriteLock("orders").Read(), c.ReadWriteLock("orders").Write()} {
				var busy *redlatch.BusyError
				if _, err := l.Try(bg); !errors.As(err, &busy) || busy.Owner != wr.Owner() {
					t.Errorf("Try: %v, want busy with %s", err, wr.Owner())
				}
			}
		}
		w.release(wr)
		rd := w.acquire(c.ReadWriteLock("orders").Read(), bg)
		rd2 := w.acquire(other.ReadWriteLock("orders").Read(), bg)
		for _, c := range []*redlatch.Client{c, other} {
			if _, err := c.ReadWriteLock("orders").Write().Try(bg); !errors.Is(err, redlatch.ErrBusy) {
				t.Errorf("Try to write: %v", err)
			}
		}
		w.release(rd)
		if _, err := c.ReadWriteLock("orders").Write().Try(bg); !errors.Is(err, redlatch.ErrBusy) {
			t.Errorf("Try to write: %v", err)
		}
		w.release(rd2)
		w.release(w.acquire(c.ReadWriteLock("orders").Write(), bg))
		w.wantNoKeys()
	})
}

func TestReadersOfOneProcessShareOneRemoteHold(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c := w.client(redlatch.Config{})
		l := c.ReadWriteLock("orders").Read()
		first := w.acquire(l, bg)
		w.server.SetError("LOADING the second reader does not ask")
		var holds []*redlatch.Hold
		for range 10_000 {
			holds = append(holds, w.acquire(l, bg))
		}
		w.server.SetError("")
		w.wantFields("10,001 readers", "orders", map[string]string{"mode": "read", first.Owner(): "1"})
		if n := len(w.server.Keys()); n != 2 {
			t.Errorf("%d keys: %q", n, w.server.Keys())
		}
		time.Sleep(time.Minute)
		w.release(first)
		for _, h := range holds {
			if h.Err() != nil {
				t.Fatal(h.Err())
			}
			w.release(h)
		}
		w.wantNoKeys()
	})
}

func TestARenewalKeepsTheLockAndTheNumberedKeys(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c := w.client(redlatch.Config{})
		h := w.acquire(c.ReadWriteLock("orders").Read(), bg)
		key := wire.ReadTimeout("orders", h.Owner(), 1)
		for range 60 {
			time.Sleep(5 * time.Second)
			if a, b := w.server.TTL("orders"), w.server.TTL(key); a < 15*time.Second || b < a {
				t.Fatalf("the lock lives for %v, its key for %v", a, b)
			}
		}
		w.release(h)
		w.wantNoKeys()
	})
}

// The server evicted the key that proves that the reader lives: Redisson's next
// read-unlock would take the lock away.
func TestARenewalBringsBackANumberedKey(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c := w.client(redlatch.Config{})
		h := w.acquire(c.ReadWriteLock("orders").Read(), bg)
		key := wire.ReadTimeout("orders", h.Owner(), 1)
		w.server.Del(key)
		time.Sleep(11 * time.Second)
		if !w.server.Exists(key) {
			t.Error("it is gone")
		}
		w.release(h)
	})
}

func TestADeadClientsReadersGoWithTheirLease(t *testing.T) {
	inFakeTime(t, func(w *world) {
		dead := w.client(redlatch.Config{})
		w.acquire(dead.ReadWriteLock("orders").Read(), bg)
		live := w.client(redlatch.Config{})
		h := w.acquire(live.ReadWriteLock("orders").Read(), bg)
		_ = dead.Close()
		time.Sleep(time.Minute) // the live reader keeps the lock, not the dead one's hold
		w.release(h)
		if _, err := live.ReadWriteLock("orders").Write().Try(bg); err != nil {
			t.Errorf("a dead reader keeps a writer out: %v", err)
		}
	})
}

func TestALongDeadReaderShortensTheLockAgain(t *testing.T) {
	inFakeTime(t, func(w *world) {
		long, c := w.client(redlatch.Config{}), w.client(redlatch.Config{})
		a := w.acquire(long.ReadWriteLock("orders").Read(), bg, redlatch.Lease(time.Hour))
		w.acquire(c.ReadWriteLock("orders").Read(), bg, redlatch.Lease(10*time.Second))
		w.release(a)
		if ttl := w.server.TTL("orders"); ttl > 10*time.Second {
			t.Errorf("the lock lives for another %v, its only reader for 10s", ttl)
		}
	})
}

func TestEachReadHoldHasItsOwnLease(t *testing.T) {
	inFakeTime(t, func(w *world) {
		var lost atomic.Int64
		start := time.Now()
		c := w.client(redlatch.Config{Events: redlatch.Events{Lost: func(redlatch.LostEvent) { lost.Add(1) }}})
		l := c.ReadWriteLock("orders").Read()
		kept := w.acquire(l, bg)
		short := w.acquire(l, bg, redlatch.Lease(5*time.Second))
		long := w.acquire(l, bg, redlatch.Lease(time.Minute))
		if d := time.Until(short.Expires()); d > 4900*time.Millisecond || d < 4500*time.Millisecond {
			t.Errorf("the short hold expires in %v", d)
		}
		if d, ttl := time.Until(long.Expires()), w.server.TTL("orders"); d < 58*time.Second || d > ttl {
			t.Errorf("the long hold expires in %v, the lock in %v", d, ttl)
		}
		<-short.Context().Done()
		w.wantErr(context.Cause(short.Context()), redlatch.ErrLost)
		w.wantErr(short.Release(bg), redlatch.ErrLost)
		if d := time.Since(start); d > 5*time.Second {
			t.Errorf("the short hold ended after %v", d)
		}
		if kept.Err() != nil || long.Err() != nil {
			t.Error("others ended with it")
		}
		<-long.Context().Done()
		w.wantErr(long.Err(), redlatch.ErrLost)
		if d := time.Since(start); d > time.Minute || d < 58*time.Second {
			t.Errorf("the long hold ended after %v", d)
		}
		if kept.Err() != nil {
			t.Error("the watchdog's hold ended with it")
		}
		w.wantErr(long.Release(bg), redlatch.ErrLost)
		w.release(kept)
		w.wantNoKeys()
		synctest.Wait()
		if lost.Load() != 2 {
			t.Errorf("%d holds were lost", lost.Load())
		}
	})
}

func TestAReadHoldOfALeaseCanBeExtended(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c := w.client(redlatch.Config{})
		l := c.ReadWriteLock("orders").Read()
		a := w.acquire(l, bg, redlatch.Lease(5*time.Second))
		b := w.acquire(l, bg, redlatch.Lease(5*time.Second))
		if err := a.Extend(bg, time.Minute); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if a.Err() != nil || b.Err() == nil {
			t.Errorf("extended: %v, not extended: %v", a.Err(), b.Err())
		}
		w.wantErr(b.Release(bg), redlatch.ErrLost)
		w.release(a)
		w.wantNoKeys()
	})
}

func TestMaxHoldBoundsEachReadHold(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c := w.client(redlatch.Config{MaxHold: time.Minute})
		l := c.ReadWriteLock("orders").Read()
		a := w.acquire(l, bg)
		time.Sleep(40 * time.Second)
		b := w.acquire(l, bg)
		time.Sleep(30 * time.Second)
		if a.Err() == nil || b.Err() != nil {
			t.Errorf("after 70s: %v, after 30s: %v", a.Err(), b.Err())
		}
		w.wantErr(a.Release(bg), redlatch.ErrLost)
		w.release(b)
		w.wantNoKeys()
	})
}

func TestLocalWritersAndReadersAreFairToOneAnother(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c := w.client(redlatch.Config{})
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
					w.release(h)
				}
			})
		}
		wg.Wait()
		t.Logf("reads, writes: %v", count)
		if count[0] < 1000 || count[1] < 300 {
			t.Errorf("reads, writes in 10s: %v", count)
		}
		w.wantNoKeys()
	})
}

func TestARemoteWriterGetsInWithinOneDrainUnderAStormOfReaders(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c, other := w.client(redlatch.Config{}), w.client(redlatch.Config{})
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
					w.release(h)
				}
			})
		}
		time.Sleep(time.Second)
		for range 20 {
			start := time.Now()
			h := w.acquire(other.ReadWriteLock("orders").Write(), bg)
			if d := time.Since(start); d > 100*time.Millisecond {
				t.Errorf("a writer waited for %v; readers hold for 60ms at most", d)
			}
			w.release(h)
			time.Sleep(50 * time.Millisecond)
		}
		cancel()
		wg.Wait()
		w.wantNoKeys()
	})
}

func TestAForceReleaseOfReadersLeavesWritersAlone(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c, other := w.client(redlatch.Config{}), w.client(redlatch.Config{})
		rw, orw := c.ReadWriteLock("orders"), other.ReadWriteLock("orders")
		synctest.Wait()
		wr := w.acquire(rw.Write(), bg)
		if ok, err := orw.Read().ForceRelease(bg); ok || err != nil || wr.Err() != nil {
			t.Fatalf("readers released: %v, %v; the writer: %v", ok, err, wr.Err())
		}
		rd := w.acquire(rw.Read(), wr.Context())
		if ok, err := orw.Read().ForceRelease(bg); ok || err != nil || wr.Err() != nil || rd.Err() != nil {
			t.Fatalf("readers released: %v, %v; the writer: %v, what it reads: %v", ok, err, wr.Err(), rd.Err())
		}
		w.release(rd)
		info, err := orw.Write().Info(bg)
		if err != nil || len(info.Holders) != 1 || info.Holders[0].Owner != wr.Owner() || info.Kind != redlatch.KindReadWrite || info.Holders[0].Mode != "write" {
			t.Errorf("%+v, %v", info, err)
		}
		if ok, err := orw.Write().ForceRelease(bg); !ok || err != nil || wr.Err() == nil {
			t.Fatalf("the writer released: %v, %v; %v", ok, err, wr.Err())
		}
		synctest.Wait()
		w.wantNoKeys()
		a, b := w.acquire(rw.Read(), bg), w.acquire(rw.Read(), bg)
		if ok, err := orw.Write().ForceRelease(bg); ok || err != nil || a.Err() != nil {
			t.Fatalf("the writer released: %v, %v; a reader: %v", ok, err, a.Err())
		}
		if info, err := orw.Read().Info(bg); err != nil || len(info.Holders) != 1 || info.Holders[0].Count != 1 || info.Holders[0].Owner != a.Owner() {
			t.Errorf("%+v, %v", info, err)
		}
		if ok, err := orw.Read().ForceRelease(bg); !ok || err != nil || a.Err() == nil || b.Err() == nil {
			t.Fatalf("readers released: %v, %v; %v, %v", ok, err, a.Err(), b.Err())
		}
		synctest.Wait()
		w.wantNoKeys()
	})
}

func TestAWriterMayHaveAToken(t *testing.T) {
	inFakeTime(t, func(w *world) {
		rw := w.client(redlatch.Config{}).ReadWriteLock("orders")
		for i := range 3 {
			h := w.acquire(rw.Write(), bg, redlatch.Fenced())
			if h.Token() != int64(i+1) {
				t.Errorf("token %d, want %d", h.Token(), i+1)
			}
			w.release(h)
		}
		if _, err := rw.Read().Acquire(bg, redlatch.Fenced()); err == nil {
			t.Error("a reader got a token")
		}
	})
}

// Readers of several processes take turns so that somebody always reads.
func TestAPreferredWriterGetsInAmongManyReadingProcesses(t *testing.T) {
	for _, prefer := range []bool{true, false} {
		inFakeTime(t, func(w *world) {
			lockOf := func() *redlatch.ReadWriteLock {
				rw := w.client(redlatch.Config{}).ReadWriteLock("orders")
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
							w.release(h)
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
				h, err := wr.Write().Acquire(bg, redlatch.Wait(2*time.Second))
				longest = max(longest, time.Since(start))
				if err == nil {
					w.release(h)
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
			w.wantNoKeys()
		})
	}
}

// A wish that is given up lets the readers in at once.
func TestAPreferredWriterThatGivesUpWakesTheReaders(t *testing.T) {
	inFakeTime(t, func(w *world) {
		a, b, c := w.client(redlatch.Config{}), w.client(redlatch.Config{}), w.client(redlatch.Config{})
		long := w.acquire(a.ReadWriteLock("orders").PreferWriters().Read(), bg)
		wc := later(func() error {
			_, err := b.ReadWriteLock("orders").PreferWriters().Write().Acquire(bg, redlatch.Wait(7*time.Second))
			return err
		})
		time.Sleep(time.Second)
		start := time.Now()
		w.release(w.acquire(c.ReadWriteLock("orders").Read(), bg)) // without preference
		if time.Since(start) > 0 {
			t.Error("it waited")
		}
		w.release(w.acquire(c.ReadWriteLock("orders").PreferWriters().Read(), bg))
		if d := time.Since(start); d < 5900*time.Millisecond || d > 6100*time.Millisecond {
			t.Errorf("a reader waited for %v", d)
		}
		w.wantErr(<-wc, redlatch.ErrBusy)
		w.release(long)
		w.wantNoKeys()
	})
}

// Its announcement is under way when its context ends.
func TestAPreferredWriterReturnsWhenItsContextEnds(t *testing.T) {
	inFakeTime(t, func(w *world) {
		slow := &tap{hook: func(s string, args []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "readwrite.write.intent" && args[1] != "0" {
				time.Sleep(2 * time.Second)
			}
			return next()
		}}
		c, other := w.tapped(redlatch.Config{}, slow), w.client(redlatch.Config{})
		rd := w.acquire(other.ReadWriteLock("orders").Read(), bg)
		l := c.ReadWriteLock("orders").PreferWriters().Write()
		returns := func(when string, ctx context.Context, want error, opts ...redlatch.Option) {
			start := time.Now()
			_, err := l.Acquire(ctx, opts...)
			w.wantErr(err, want)
			if d := time.Since(start); d != 100*time.Millisecond {
				t.Errorf("%s: after %v", when, d)
			}
			time.Sleep(3 * time.Second)
			if keys := w.server.Keys(); len(keys) != 2 {
				t.Errorf("%s: three seconds later there are keys %q", when, keys)
			}
		}
		ctx, cancel := context.WithTimeout(bg, 100*time.Millisecond)
		defer cancel()
		returns("its context ends", ctx, context.DeadlineExceeded)
		returns("its time is over", bg, redlatch.ErrBusy, redlatch.Wait(100*time.Millisecond))
		time.AfterFunc(100*time.Millisecond, func() { _ = c.Close() })
		returns("its client closes", bg, redlatch.ErrClosed)
		w.release(rd)
	})
}
