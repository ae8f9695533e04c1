package clients

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/barrier"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/internal/wire"
	"github.com/redlatch/redlatch/latch"
	"github.com/redlatch/redlatch/ratelimit"
	"github.com/redlatch/redlatch/redisson"
	"github.com/redlatch/redlatch/semaphore"
	"github.com/redlatch/redlatch/tests/internal/drivers"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// What is stored can be anything: somebody else's, an old version's, a bug's.

// endless are numbers that stand for a time which never comes; the embedded server
// reads some of them only.
var (
	endless         = []string{"inf", "+inf", "1e300", "9223372036854775807", "9223372036855", "99999999999999999999999", "0x7fffffffffffffff"}
	endlessEmbedded = []string{"1.5e300", "9.5e18", "9223372036855", "9300000000000000"}
)

// An endlessStory stores a number, and says who waits because of it.
type endlessStory struct {
	put  func(do func(args ...string), number string)
	wait func(c *redlatch.Client, ctx context.Context) error
}

var endlessStories = map[string]endlessStory{
	"a value of a group": {put: func(do func(args ...string), number string) {
		value := wire.GroupField("v")
		expiry, count := wire.GroupFields(value, locktest.JavaOwner)
		do("HSET", "x", value, locktest.JavaOwner, expiry, number, count, "1")
		do("PEXPIRE", "x", "1000000")
	}, wait: func(c *redlatch.Client, ctx context.Context) error {
		_, err := redisson.GroupLock(c, "x", []string{"v"}).Acquire(ctx)
		return err
	}},
	"a writer that readers prefer": {put: func(do func(args ...string), number string) {
		do("ZADD", "redlatch_writers:{x}", number, locktest.JavaOwner)
	}, wait: func(c *redlatch.Client, ctx context.Context) error {
		_, err := c.ReadWriteLock("x").PreferWriters().Read().Acquire(ctx)
		return err
	}},
	"a waiter in front": {put: func(do func(args ...string), number string) {
		do("RPUSH", "redisson_lock_queue:{x}", locktest.JavaOwner)
		do("ZADD", "redisson_lock_timeout:{x}", number, locktest.JavaOwner)
	}, wait: func(c *redlatch.Client, ctx context.Context) error {
		_, err := c.FairLock("x").Acquire(ctx)
		return err
	}},
	"the interval of a limiter": {put: func(do func(args ...string), number string) {
		do("HSET", "x", "rate", "1", "interval", number, "type", "0")
	}, wait: func(c *redlatch.Client, ctx context.Context) error {
		if err := ratelimit.New(c, "x", ratelimit.Rate{}).Acquire(context.WithoutCancel(ctx), 1); err != nil {
			return fmt.Errorf("the first permit: %w", err)
		}
		return ratelimit.New(c, "x", ratelimit.Rate{}).Acquire(ctx, 1)
	}},
	"a record of a limiter": {put: func(do func(args ...string), number string) {
		do("HSET", "x", "rate", "1", "interval", "1000000", "type", "0")
		do("ZADD", "{x}:permits", number, "\x10"+strings.Repeat("r", 16)+"\x01\x00\x00\x00")
	}, wait: func(c *redlatch.Client, ctx context.Context) error {
		return ratelimit.New(c, "x", ratelimit.Rate{}).Acquire(ctx, 1)
	}},
	"a permit": {put: func(do func(args ...string), number string) {
		do("SET", "x", "0")
		do("ZADD", "{x}:timeout", number, strings.Repeat("p", 16))
	}, wait: func(c *redlatch.Client, ctx context.Context) error {
		_, err := semaphore.NewExpirable(c, "x", 0).Acquire(ctx, 1)
		return err
	}},
}

// Whoever waits for what never comes polls every two seconds, or every 0.8 s if it
// is the first in a queue, and not as fast as it can.
func TestAStoredNumberMakesNobodyPollWithoutPause(t *testing.T) {
	for what, story := range endlessStories {
		for _, number := range endlessEmbedded {
			t.Run(what+" "+number, func(t *testing.T) {
				locktest.InFakeTime(t, func(w *locktest.World) {
					raw := w.Foreigner("x", locktest.JavaOwner).Rdb
					story.put(func(args ...string) {
						t.Helper()
						cmd := make([]any, len(args))
						for i, a := range args {
							cmd[i] = a
						}
						if err := raw.Do(bg, cmd...).Err(); err != nil {
							t.Fatal(err)
						}
					}, number)
					c, ran := w.Counted(redlatch.Config{})
					ctx, cancel := context.WithTimeout(bg, 20*time.Second)
					defer cancel()
					w.WantErr(story.wait(c, ctx), context.DeadlineExceeded, redlatch.ErrBusy)
					if scripts := ran(); len(scripts) > 40 {
						t.Errorf("%d requests in 20 s, as %q", len(scripts), scripts[:10])
					}
				})
			})
		}
	}
}

func TestAStoredNumberMakesNobodyPollWithoutPauseOnRealServers(t *testing.T) {
	locktest.OnRealServers(t, func(t *testing.T, s *testserver.Server) {
		var ran atomic.Int64
		d := &locktest.Tap{Redis: drivers.Rueidis.Open(t, drivers.Single(s.Addr())), Hook: func(_ string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			ran.Add(1)
			return next()
		}}
		for what, story := range endlessStories {
			for _, number := range endless {
				s.MustDo("FLUSHALL")
				c := locktest.ClientOf(t, d, redlatch.Config{})
				story.put(func(args ...string) {
					if _, err := s.Do(args...); err != nil && !strings.HasPrefix(number, "0x") { // some bear that, some do not
						t.Fatal(what, number, err)
					}
				}, number)
				ran.Store(0)
				ctx, cancel := context.WithTimeout(bg, 100*time.Millisecond)
				err := story.wait(c, ctx)
				cancel()
				if !errors.Is(err, context.DeadlineExceeded) && !strings.HasPrefix(number, "0x") {
					t.Errorf("%s %s: %v", what, number, err)
				}
				if n := ran.Load(); n > 25 {
					t.Errorf("%s %s: %d requests in 0.1 s", what, number, n)
				}
				_ = c.Close()
			}
		}

		s.MustDo("FLUSHALL")
		c := locktest.ClientOf(t, d, redlatch.Config{})
		s.MustDo("HSET", "api", "rate", "1", "interval", "1000", "type", "0", "keepAliveTime", "1e300")
		if err := ratelimit.New(c, "api", ratelimit.Rate{}).TryAcquire(bg, 1, 0); err != nil {
			t.Error(err)
		}

		// A TTL that is longer than a number can say exactly.
		rw := c.ReadWriteLock("x")
		h, err := rw.Read().Acquire(bg)
		if err != nil {
			t.Fatal(err)
		}
		other := "{x}:" + locktest.JavaOwner + ":rwlock_timeout:1"
		s.MustDo("HSET", "x", locktest.JavaOwner, "1")
		s.MustDo("SET", other, "1", "PX", "9223370000000000000")
		if err := h.Release(bg); err != nil {
			t.Error(err)
		}
		if s.MustDo("HEXISTS", "x", locktest.JavaOwner) != int64(1) || s.MustDo("HLEN", "x") != int64(2) {
			t.Errorf("left: %v", s.MustDo("HGETALL", "x"))
		}
	})
}

// What is no number is an error, or as good as none, but never a wait without end,
// a crash or somebody else's lock.
func TestWhatIsNoNumberIsNoTime(t *testing.T) {
	for _, text := range []string{"nan", "-nan", "", "soon", "-inf", "-1e300", "1e999x"} {
		locktest.InFakeTime(t, func(w *locktest.World) {
			c := w.Client(redlatch.Config{})
			value := wire.GroupField("v")
			expiry, count := wire.GroupFields(value, locktest.JavaOwner)
			w.Server.HSet("g", value, locktest.JavaOwner, expiry, text, count, "1", "other", locktest.JavaOwner)
			ctx, cancel := context.WithTimeout(bg, 10*time.Second)
			defer cancel()
			h := w.Acquire(ctx, redisson.GroupLock(c, "g", []string{"v"}))
			own, _ := wire.GroupFields(value, h.ID())
			w.Server.HSet("g", own, text) // of ours: the next renewal puts it right
			time.Sleep(30 * time.Second)
			if ms, err := strconv.ParseInt(w.Server.HGet("g", own), 10, 64); err != nil || time.Until(time.UnixMilli(ms)) < 10*time.Second {
				t.Errorf("%q: it lasts until %q", text, w.Server.HGet("g", own))
			}
			w.Release(h)

			w.Server.HSet("api", "rate", "1", "interval", text, "type", "0")
			l := ratelimit.New(c, "api", ratelimit.Rate{})
			for range 3 {
				_ = l.TryAcquire(bg, 1, 0) // an error, or none
			}
			_, err := l.Config(bg)
			if number := strings.HasPrefix(text, "-") && text != "-nan"; number != (err == nil) {
				t.Errorf("%q is an interval: %v", text, err)
			} else if err != nil && driver.Failure(err).Code != "WRONGTYPE" {
				t.Errorf("%q is no interval, which is said so: %v", text, err)
			}
		})
	}
}

// Info shows what is stored as well as it can be shown.
func TestInfoOfATimeWithoutEnd(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		value := wire.GroupField("v")
		expiry, count := wire.GroupFields(value, locktest.JavaOwner)
		w.Server.HSet("g", value, locktest.JavaOwner, expiry, "1e300", count, "1")
		info, err := admin.LockInfo(bg, redisson.GroupLock(c, "g", []string{"v"}))
		if err != nil || len(info.Holders) != 1 || info.Holders[0].TTL < 100*365*24*time.Hour {
			t.Errorf("%+v, %v", info, err)
		}
		if ok, err := admin.ForceRelease(bg, redisson.GroupLock(c, "g", []string{"v"})); err != nil || !ok {
			t.Errorf("ForceRelease: %v, %v", ok, err)
		}
	})
}

// An error fits into a line of a log, whatever is stored, and writes nothing else
// to a terminal than that.
func TestErrorsQuoteAndCutWhatIsStored(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	const raw = "\x1b[2J\r\nreally\xff\u202e"
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		short := func(what string, err error) {
			t.Helper()
			switch {
			case err == nil:
				t.Errorf("%s: no error", what)
			case len(err.Error()) > 1000:
				t.Errorf("%s: an error of %d bytes: %.100s", what, len(err.Error()), err)
			case strings.ContainsAny(err.Error(), "\x1b\r\n\u202e"), strings.Contains(err.Error(), "\xff"):
				t.Errorf("%s: %q", what, err)
			}
		}
		for i, text := range []string{long, raw, raw + long} {
			name := func(of string) string { return fmt.Sprint(of, i) }
			w.Server.HSet(name("lock"), text, "1")
			_, err := c.Lock(name("lock")).TryAcquire(bg, 0)
			short("an owner", err)
			w.WantErr(err, redlatch.ErrBusy)
			w.Server.HSet(name("rw"), "mode", "write", text+":write", "1")
			_, err = c.ReadWriteLock(name("rw")).Read().TryAcquire(bg, 0)
			short("a writer", err)
			w.Server.HSet(name("count"), "owner", text, text, "x")
			_, err = admin.LockInfo(bg, c.Lock(name("count")))
			short("a hold count", err)
			w.Server.HSet(name("mode"), "mode", "read", text, text)
			_, err = admin.LockInfo(bg, c.ReadWriteLock(name("mode")).Read())
			short("a count of reads", err)
			value := wire.GroupField("v")
			w.Server.HSet(name("group"), value, locktest.JavaOwner, value+":"+locktest.JavaOwner+wire.GroupExpiry, text)
			_, err = admin.LockInfo(bg, redisson.GroupLock(c, name("group"), []string{"v"}))
			short("an expire_time", err)
			_ = w.Server.Set("redisson_lock_token:{"+name("fenced")+"}", text)
			_, err = admin.LockInfo(bg, c.Lock(name("fenced"), redlatch.Fenced()))
			short("a token", err)
			_, err = c.Lock(name("fenced"), redlatch.Fenced()).TryAcquire(bg, 0)
			short("a token that is counted", err)
			_ = w.Server.Set(name("number"), text)
			_, err = latch.New(c, name("number")).Count(bg)
			short("a latch", err)
			_, err = admin.New(c).Info(bg, name("number"))
			short("a number", err)
			short("a semaphore", semaphore.New(c, name("number"), 0).Acquire(bg, 1))
			w.Server.HSet(name("limiter"), "rate", text, "interval", "1", "type", "0")
			_, err = ratelimit.New(c, name("limiter"), ratelimit.Rate{}).Config(bg)
			short("a rate", err)
			w.Server.HSet("redlatch_barrier:{"+name("barrier")+"}", "generation", locktest.JavaOwner, "parties", text)
			_, err = barrier.New(c, name("barrier"), 2).Await(bg)
			short("parties", err)
		}
		synctest.Wait()
	})
}
