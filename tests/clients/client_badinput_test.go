package clients

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/redisson"
	"github.com/redlatch/redlatch/redlatchgoredis"
	"github.com/redlatch/redlatch/tests/internal/drivers"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

func TestBadInputIsRefusedWithASentenceAndLosesNothing(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, other := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		l := c.Lock("orders")
		h := w.Acquire(bg, l)
		var none context.Context
		says := func(err error, words ...string) {
			t.Helper()
			if err == nil {
				t.Fatalf("no error, want one that says %q", words)
			}
			for _, word := range words {
				if !strings.Contains(err.Error(), word) {
					t.Fatalf("error %q does not say %q", err, word)
				}
			}
		}
		second := func(_ any, err error) error { return err }

		says(second(l.Acquire(none)), "nil context", "context.Background()")
		says(second(l.TryAcquire(none, 0)), "nil context")
		says(l.Do(none, func(context.Context) error { return nil }), "nil context")
		says(second(admin.LockInfo(none, l)), "nil context")
		says(second(admin.ForceRelease(none, l)), "nil context")
		says(second(admin.LockInfo(bg, (*redlatch.Lock)(nil))), "nil lock", "client.Lock(name)")
		says(second(admin.ForceRelease(bg, (*redlatch.Lock)(nil))), "nil lock")
		says(h.Release(none), "nil context")
		says(h.Extend(none, time.Second), "nil context")

		says(second(locktest.With(l, redlatch.Lease(0)).Acquire(bg)), "lease", "20ms")
		says(second(locktest.With(l, redlatch.Lease(-time.Second)).Acquire(bg)), "lease of -1s")
		says(second(l.TryAcquire(bg, -time.Second)), "negative")

		for name, word := range map[string]string{
			"": "empty", "a{b": "without a '}'", "a}b": "without a '{'", "a{}b": "empty hash tag", "}{": "before", "{a}{": "unbalanced",
		} {
			says(second(c.Lock(name).Acquire(bg)), word)
			says(second(admin.LockInfo(bg, c.Lock(name))), word)
			says(second(admin.ForceRelease(bg, c.Lock(name))), word)
		}

		_, err := other.Lock("orders").Acquire(h.Context())
		w.WantErr(err, redlatch.ErrReentry)
		says(err, "another client")

		if err := w.Server.Set("text", "not a lock"); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		says(second(c.Lock("text").Acquire(bg)), "WRONGTYPE")
		says(second(admin.LockInfo(bg, c.Lock("text"))), "WRONGTYPE")
		if d := time.Since(start); d > time.Millisecond || redlatch.IsRetryable(err) {
			t.Fatalf("took %v", d)
		}
		if got, _ := w.Server.Get("text"); got != "not a lock" {
			t.Fatalf("the key became %q", got)
		}

		if err := h.Err(); err != nil {
			t.Fatalf("bad input cost the hold: %v", err)
		}
		w.Release(h)
		w.WantErr(h.Release(bg), redlatch.ErrNotHeld)
	})
}

func TestAnUnreachableServerIsErrUnavailableInTime(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		w.Server.SetError("LOADING Redis is loading the dataset in memory")
		start := time.Now()
		_, err := c.Lock("orders").Acquire(bg)
		w.WantErr(err, redlatch.ErrUnavailable)
		if !redlatch.IsRetryable(err) || !strings.Contains(err.Error(), "LOADING") {
			t.Fatalf("got %v", err)
		}
		if d := time.Since(start); d < 10*time.Second || d > 12*time.Second {
			t.Fatalf("took %v, want OutageTimeout", d)
		}
		ctx, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		start = time.Now()
		_, err = c.Lock("orders").Acquire(ctx)
		w.WantErr(err, context.DeadlineExceeded, redlatch.ErrUnavailable)
		if d := time.Since(start); d != time.Second {
			t.Fatalf("took %v, want the context's second", d)
		}
		_, err = c.Lock("orders").TryAcquire(bg, 2*time.Second)
		w.WantErr(err, redlatch.ErrUnavailable)
		if d := time.Since(start); d != 3*time.Second {
			t.Fatalf("Wait did not bound the outage: %v", d)
		}
		w.Server.SetError("")
		w.Release(w.Acquire(bg, c.Lock("orders")))
	})
}

// Were it tried again, it would be for OutageTimeout.
func TestAWrongPasswordIsRefusedAtOnceAndNeverShown(t *testing.T) {
	w := locktest.InRealTime(t)
	w.Server.RequireAuth("right")
	if err := w.Server.Start(); err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClient(&redis.Options{Addr: w.Server.Addr(), Password: "s3cret"})
	w.Cleanup(func() { _ = rdb.Close() })
	c := w.ClientWith(redlatchgoredis.Use(rdb), redlatch.Config{OutageTimeout: 24 * time.Hour})
	ctx, cancel := context.WithTimeout(bg, time.Minute)
	defer cancel()
	_, err := c.Lock("orders").Acquire(ctx)
	if err == nil || !strings.Contains(err.Error(), "WRONGPASS") || strings.Contains(err.Error(), "s3cret") {
		t.Fatalf("got %v", err)
	}
	if redlatch.IsRetryable(err) || errors.Is(err, redlatch.ErrUnavailable) || ctx.Err() != nil {
		t.Fatalf("it was tried again: %v", err)
	}
}

func TestNewRefusesWhatDoesNotFitTogether(t *testing.T) {
	good := &redis.Options{Addr: "127.0.0.1:1"}
	for name, tt := range map[string]struct {
		options *redis.Options
		cfg     redlatch.Config
		says    string
	}{
		"short watchdog":   {good, redlatch.Config{WatchdogTimeout: time.Millisecond}, "WatchdogTimeout"},
		"negative MaxHold": {good, redlatch.Config{MaxHold: -1}, "MaxHold"},
		"negative outage":  {good, redlatch.Config{OutageTimeout: -1}, "OutageTimeout"},
		"negative close":   {good, redlatch.Config{CloseTimeout: -1}, "CloseTimeout"},
		"slow driver":      {&redis.Options{Addr: "127.0.0.1:1", ReadTimeout: 11 * time.Second}, redlatch.Config{}, "more than a third"},
		"no read time-out": {&redis.Options{Addr: "127.0.0.1:1", ReadTimeout: -1}, redlatch.Config{}, "no read time-out"},
		"short lease":      {good, redlatch.Config{WatchdogTimeout: 3 * time.Second}, "more than a third"},
	} {
		t.Run(name, func(t *testing.T) {
			rdb := redis.NewClient(tt.options)
			defer func() { _ = rdb.Close() }()
			_, err := redlatch.New(redlatchgoredis.Use(rdb), tt.cfg)
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Fatalf("got %v, want an error that says %q", err, tt.says)
			}
		})
	}
	if _, err := redlatch.New(nil, redlatch.Config{}); err == nil {
		t.Fatal("New(nil) succeeded")
	}
	rdb := redis.NewClient(good)
	defer func() { _ = rdb.Close() }()
	c, err := redlatch.New(redlatchgoredis.Use(rdb), redlatch.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatalf("the zero Config with the client's defaults: %v", err)
	}
	_ = c.Close()
}

// A user without the right to PEXPIRE left locks without a TTL, for ever: the
// server refuses a script in the middle, and keeps what it has done until then.
func TestATakeThatIsRefusedHalfWayLeavesNothing(t *testing.T) {
	locktest.Long(t)
	for _, kind := range testserver.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			s := testserver.Start(t, kind)
			s.MustDo("ACL", "SETUSER", "default", "-pexpire")
			c := locktest.ClientOf(t, drivers.Goredis.Open(t, drivers.Single(s.Addr())), redlatch.Config{})
			for name, acquire := range map[string]func(name string) error{
				"plain": func(n string) error { _, err := c.Lock(n).Acquire(bg); return err },
				"fair":  func(n string) error { _, err := c.FairLock(n).Acquire(bg); return err },
				"write": func(n string) error { _, err := c.ReadWriteLock(n).Write().Acquire(bg); return err },
				"read":  func(n string) error { _, err := c.ReadWriteLock(n).Read().Acquire(bg); return err },
				"group": func(n string) error { _, err := redisson.GroupLock(c, n, []string{"a", "b"}).Acquire(bg); return err },
				"multi": func(n string) error {
					_, err := redlatch.MultiLock(c.Lock(n), c.Lock(n+"2")).Acquire(bg)
					return err
				},
			} {
				if err := acquire(name); err == nil || redlatch.IsRetryable(err) || errors.Is(err, redlatch.ErrBusy) {
					t.Errorf("%s: %v", name, err)
				}
			}
			var keys []string
			if !locktest.Within(locktest.Generous, func() bool { keys = s.Keys(); return len(keys) == 0 }) {
				t.Fatalf("after %v there are %q", locktest.Generous, keys)
			}
		})
	}
}

// What counts tokens is asked before the lock is written.
func TestATokenKeyOfAnotherTypeLeavesNoLock(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		for name, l := range map[string]*redlatch.Lock{
			"plain": c.Lock("a", redlatch.Fenced()), "fair": c.FairLock("b"), "write": c.ReadWriteLock("c").Write(), "group": redisson.GroupLock(c, "d", []string{"x"}),
		} {
			h := w.Acquire(bg, locktest.With(l, redlatch.Fenced()))
			w.Release(h)
			counter := w.Keys()
			if len(counter) != 1 {
				t.Fatalf("%s: %q", name, counter)
			}
			w.Server.Del(counter[0])
			_, _ = w.Server.Lpush(counter[0], "not a number")
			if _, err := locktest.With(l, redlatch.Fenced()).TryAcquire(bg, 0); err == nil || errors.Is(err, redlatch.ErrBusy) {
				t.Errorf("%s: %v", name, err)
			}
			if keys := w.Keys(); len(keys) != 1 {
				t.Errorf("%s: there are %q", name, keys)
			}
			w.Server.FlushAll()
		}
	})
}
