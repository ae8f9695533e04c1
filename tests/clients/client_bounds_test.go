package clients

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/redisson"
	"github.com/redlatch/redlatch/tests/internal/drivers"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// fill puts fields into a hash: n owners that read once each.
func fill(s *testserver.Server, key string, n int) {
	s.MustDo("EVAL", `for i = 1, ARGV[1] do redis.call('HSET', KEYS[1], '285475da-9152-4c83-822a-67ee2f116a79:' .. i, 1) end`, "1", key, strconv.Itoa(n))
}

// A hash that is no lock, or says what no lock can, is an error that names the
// key, and costs the server next to nothing.
func TestNoScriptGoesThroughMoreThanALockHas(t *testing.T) {
	locktest.OnRealServers(t, func(t *testing.T, s *testserver.Server) {
		c := locktest.ClientOf(t, drivers.Rueidis.Open(t, drivers.Single(s.Addr())), redlatch.Config{})
		refused := func(what string, do func() error) {
			t.Helper()
			size, _ := s.MustDo("HLEN", "odd").(int64)
			locktest.Commands(t, s)
			err := do()
			n := 0
			for name, calls := range locktest.Executed(t, s) {
				n += calls
				if size > 10_000 && slices.Contains([]string{"hkeys", "hvals", "hgetall"}, name) {
					t.Errorf("%s: %s of so many fields", what, name)
				}
			}
			var re *driver.RunError
			if !errors.As(err, &re) || re.Code != "WRONGTYPE" || !strings.Contains(err.Error(), "odd") {
				t.Errorf("%s: %v", what, err)
			}
			if n > 60 {
				t.Errorf("%s: %d commands", what, n)
			}
		}
		try := func(l *redlatch.Lock) func() error {
			return func() error { _, err := l.TryAcquire(bg, 0); return err }
		}
		force := func(l *redlatch.Lock) func() error {
			return func() error { _, err := admin.ForceRelease(bg, l); return err }
		}
		rw := c.ReadWriteLock("odd")

		fill(s, "odd", 100_000)
		refused("a lock", try(c.Lock("odd")))
		refused("a fair lock", try(c.FairLock("odd")))
		refused("a fenced lock", try(c.Lock("odd", redlatch.Fenced())))
		refused("a multi lock", func() error {
			_, err := redlatch.MultiLock(c.Lock("odd"), c.Lock("z")).Acquire(bg)
			return err
		})
		refused("a reader of what is no read-write lock", try(rw.Read()))
		s.MustDo("HSET", "odd", "mode", "read")
		refused("a writer", try(rw.Write()))
		refused("a group", try(redisson.GroupLock(c, "odd", []string{"v"})))
		h, err := rw.Read().Acquire(bg) // a reader does not look at the others
		if err != nil {
			t.Fatal(err)
		}
		refused("the release of a reader among many", func() error { return h.Release(bg) })
		refused("a force release of many", force(rw.Read()))
		refused("Info", func() error { _, err := admin.LockInfo(bg, rw.Read()); return err })
		s.MustDo("DEL", "odd")

		if h, err = rw.Read().Acquire(bg); err != nil {
			t.Fatal(err)
		}
		s.MustDo("HSET", "odd", locktest.JavaOwner, "100000000")
		refused("the release of a reader beside 10^8 holds", func() error { return h.Release(bg) })
		refused("a force release of 10^8 holds", force(rw.Read()))
		s.MustDo("HSET", "odd", "mode", "write", locktest.JavaOwner+":write", "1")
		refused("a force release of a writer that reads 10^8 times", force(rw.Write()))
		s.MustDo("DEL", "odd")

		// Of as many as there may be, all are looked at.
		if h, err = rw.Read().Acquire(bg); err != nil {
			t.Fatal(err)
		}
		fill(s, "odd", 9000)
		s.MustDo("HSET", "odd", "mode", "read")
		const theirs = "{odd}:285475da-9152-4c83-822a-67ee2f116a79:8000:rwlock_timeout:1"
		s.MustDo("SET", theirs, "1", "PX", "100000")
		s.MustDo("PEXPIRE", "odd", "25000")
		if err := h.Release(bg); err != nil {
			t.Fatal(err)
		}
		lasts, _ := s.MustDo("PTTL", "odd").(int64)
		if want, _ := s.MustDo("PTTL", theirs).(int64); lasts < want || want <= 0 { // as long as they say, whatever the clock does
			t.Errorf("the lock lasts for %d ms, and one of its readers for %d ms", lasts, want)
		}
	})
}

// A reader whose own count has gone wild is renewed and released as any other.
func TestAWildCountOfOnesOwnCostsNothing(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		rw := c.ReadWriteLock("orders")
		for _, l := range []*redlatch.Lock{rw.Read(), rw.Write()} {
			h := w.Acquire(bg, l)
			w.Server.HSet("orders", h.ID(), "1000000000")
			time.Sleep(5 * time.Minute)
			if err := h.Err(); err != nil {
				t.Fatal(err)
			}
			w.Release(h)
			w.WantNoKeys()
		}
	})
}

// Dead waiters are swept out a thousand at a time, by whoever asks, and that ends.
func TestManyDeadWaitersAreSweptOutAThousandAtATime(t *testing.T) {
	for what, score := range map[string]string{"of redlatch": "99999999999999", "of Redisson": "1", "without a time": ""} {
		t.Run(what, func(t *testing.T) {
			locktest.OnRealServers(t, func(t *testing.T, s *testserver.Server) {
				const dead, part = 100_000, 10_000 // no server answers for all of them in time, on a busy machine
				for i := 0; i < dead; i += part {
					s.MustDo("EVAL", `
for i = ARGV[1] + 1, ARGV[1] + ARGV[2] do
  local id = ARGV[4] .. i
  redis.call('RPUSH', KEYS[1], id)
  if ARGV[3] ~= '' then redis.call('ZADD', KEYS[2], ARGV[3] + i, id) end
end`, "2", "redisson_lock_queue:{x}", "redisson_lock_timeout:{x}", strconv.Itoa(i), strconv.Itoa(part), score, map[bool]string{
						true: "5f1b3c2e-6d0a-8d8e-9a51-0123456789ab:", false: "285475da-9152-4c83-822a-67ee2f116a79:",
					}[what == "of redlatch"])
				}
				most, asked := 0, 0
				d := &locktest.Tap{Redis: drivers.Rueidis.Open(t, drivers.Single(s.Addr())), Hook: func(name string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
					if !strings.HasPrefix(name, "fairlock.") {
						return next()
					}
					locktest.Commands(t, s)
					r, err := next()
					most, asked = max(most, locktest.Commands(t, s)), asked+1
					return r, err
				}}
				c := locktest.ClientOf(t, d, redlatch.Config{})
				ctx, cancel := context.WithTimeout(bg, locktest.Generous)
				defer cancel()
				h, err := c.FairLock("x").Acquire(ctx)
				if err != nil {
					t.Fatal(err)
				}
				if err := h.Release(bg); err != nil {
					t.Fatal(err)
				}
				if most > 6500 || asked < dead/1000 || asked > dead/1000+20 {
					t.Errorf("%d requests, of which one cost %d commands", asked, most)
				}
				if keys := s.Keys(); len(keys) > 0 {
					t.Errorf("left behind: %q", keys)
				}
			})
		})
	}
}

// Nobody is passed over by one who comes while the dead are swept out.
func TestASweepInPartsPassesOverNobodyWhoLives(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		a, b, c := w.Client(redlatch.Config{}), w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		queue, timeouts, _ := locktest.FairKeys("orders")
		raw := w.Foreigner("orders", locktest.JavaOwner).Rdb
		for i := range 2500 {
			id := fmt.Sprintf("5f1b3c2e-6d0a-8d8e-9a51-0123456789ab:%d", i)
			raw.RPush(bg, queue, id)
			raw.Do(bg, "ZADD", timeouts, time.Now().Add(time.Hour).UnixMilli()+int64(i), id)
		}
		h := make(chan *redlatch.Hold, 2)
		first := locktest.Later(func() error {
			got, err := a.FairLock("orders").Acquire(bg)
			h <- got
			return err
		})
		time.Sleep(time.Microsecond)
		if _, err := b.FairLock("orders").TryAcquire(bg, 0); !errors.Is(err, redlatch.ErrBusy) {
			t.Errorf("Try: %v", err)
		}
		start := time.Now()
		if err := <-first; err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took > time.Second {
			t.Errorf("it took %v", took)
		}
		next := w.Waiting(bg, c.FairLock("orders"))
		w.Release(<-h)
		w.Release(w.Got(next))
		w.WantNothing()
	})
}
