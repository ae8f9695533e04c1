package synchronizers

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/ratelimit"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

func wantAvailable(w *locktest.World, l *ratelimit.Limiter, want int) {
	w.Helper()
	if n, err := l.Available(bg); err != nil || n != want {
		w.Fatalf("available: %d (%v), want %d", n, err, want)
	}
}

// records returns the records of a sorted set: what follows the random bytes,
// and when that was, by the length of the random bytes.
func records(w *locktest.World, key string) (records []string) {
	w.Helper()
	members, err := w.Server.ZMembers(key)
	if err != nil {
		return nil
	}
	for _, m := range members {
		score, _ := w.Server.ZScore(key, m)
		records = append(records, fmt.Sprintf("%x+%d=%x@%d", m[0], len(m)-5, m[len(m)-4:], int64(score)))
	}
	return records
}

func wantKey(w *locktest.World, key, want string) {
	w.Helper()
	if got, _ := w.Server.Get(key); got != want {
		w.Fatalf("%s is %q, want %q", key, got, want)
	}
}

// What Redisson reads, and what it would have written.
func TestRateLimiterWritesWhatRedissonReads(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		l := w.Limiter(5, 2*time.Second)
		for field, want := range map[string]string{"rate": "5", "interval": "2000", "type": "0", "keepAliveTime": "0"} {
			if got := w.Server.HGet("api", field); got != want {
				t.Errorf("%s is %q, want %q", field, got, want)
			}
		}
		at := time.Now().UnixMilli()
		w.TakeRate(l, 3)
		wantKey(w, "{api}:value", "2")
		if got, want := fmt.Sprint(records(w, "{api}:permits")), fmt.Sprintf("[10+16=03000000@%d]", at); got != want {
			t.Errorf("records %s, want %s", got, want)
		}
		time.Sleep(100 * time.Millisecond)
		w.WantBusy(l, 3, 1900*time.Millisecond)
		wantKey(w, "{api}:value", "2")
		time.Sleep(1900 * time.Millisecond)
		w.TakeRate(l, 5)
		wantKey(w, "{api}:value", "0")
		if got, want := fmt.Sprint(records(w, "{api}:permits")), fmt.Sprintf("[10+16=05000000@%d]", at+2000); got != want {
			t.Errorf("records %s, want %s", got, want)
		}

		// Each client for itself, and a name with a hash tag.
		c, other := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		mine, others := ratelimit.New(c, "{x}y", ratelimit.Rate{}), ratelimit.New(other, "{x}y", ratelimit.Rate{})
		w.SetRate(mine, ratelimit.Rate{Permits: 100000, Interval: time.Minute, PerClient: true, KeepAlive: time.Hour})
		w.TakeRate(mine, 70000)
		w.TakeRate(others, 100000)
		wantAvailable(w, mine, 30000)
		wantKey(w, "{x}y:value:"+c.ID(), "30000")
		if w.Server.HGet("{x}y", "type") != "1" || w.Server.HGet("{x}y", "keepAliveTime") != "3600000" {
			t.Errorf("configured as %q, %q", w.Server.HGet("{x}y", "type"), w.Server.HGet("{x}y", "keepAliveTime"))
		}
		if got := fmt.Sprint(records(w, "{x}y:permits:"+other.ID())); !strings.HasPrefix(got, "[10+16=a0860100@") {
			t.Errorf("records %s", got)
		}
		for key, want := range map[string]time.Duration{
			"{x}y": time.Hour, "{x}y:value:" + c.ID(): time.Minute + time.Second,
			"{x}y:permits:" + c.ID(): time.Minute + time.Second, "{x}y:value:" + other.ID(): time.Minute + time.Second,
		} {
			if ttl := w.Server.TTL(key); ttl != want {
				t.Errorf("%s lasts %v", key, ttl)
			}
		}
	})
}

// Records of all versions, with every byte that a byte can be.
func TestRateLimiterReadsRecordsOfAllVersions(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		l := w.Limiter(mostPermits, time.Minute)
		w.TakeRate(l, 1)
		sum := 0
		for i, record := range []string{
			"10000102030405060708090a0b0c0d0e0f03000000", // from 3.21
			"10ff80c328a0fe00000d0a22275c257eff00010000", // 256
			"08000000000000000080000000",                 // from 3.17: 128
			"08fffefdfcfbfaf9f8ff7f0000",                 // 32767
			"0800000000000000deadbeef00ff00ff0a000000",   // 3.16.4: 10
			"0000803f00000100",                           // 3.13.3: 65536
		} {
			raw, err := hex.DecodeString(record)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.Server.ZAdd("{api}:permits", float64(time.Now().UnixMilli()-int64(i)), string(raw)); err != nil {
				t.Fatal(err)
			}
			sum += []int{3, 256, 128, 32767, 10, 65536}[i]
		}
		w.Server.Del("{api}:value")
		wantAvailable(w, l, mostPermits-1-sum)
		w.TakeRate(l, 1) // writes the value anew
		time.Sleep(time.Minute)
		w.TakeRate(l, mostPermits)
		if got := records(w, "{api}:permits"); len(got) != 1 || !strings.Contains(got[0], "=ffffff7f@") {
			t.Errorf("records %q", got)
		}
	})
}

const mostPermits = 1<<31 - 1

func TestRateLimiterWindowSlides(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		l := w.Limiter(3, time.Second)
		w.TakeRate(l, 1)
		time.Sleep(400 * time.Millisecond)
		w.TakeRate(l, 2)
		wantAvailable(w, l, 0)
		w.WantBusy(l, 1, 600*time.Millisecond)
		w.WantBusy(l, 2, time.Second) // not when the oldest goes, but when there are two
		time.Sleep(600*time.Millisecond - time.Nanosecond)
		w.WantBusy(l, 1, time.Millisecond)
		time.Sleep(time.Nanosecond)
		w.TakeRate(l, 1)
		w.WantBusy(l, 1, 400*time.Millisecond)
		start := time.Now()
		for range 3 { // and on
			if err := l.Acquire(bg, 3); err != nil {
				t.Fatal(err)
			}
		}
		if d := time.Since(start); d < 3*time.Second || d > 3200*time.Millisecond {
			t.Errorf("took %v", d)
		}
	})
}

// A grant in the middle of a millisecond counts to the end of one.
func TestRateLimiterWindowIsNotShortByAFraction(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		l := w.Limiter(1, 10*time.Millisecond)
		time.Sleep(700 * time.Microsecond)
		w.TakeRate(l, 1)
		time.Sleep(9900 * time.Microsecond)
		w.WantBusy(l, 1, time.Millisecond)
		time.Sleep(400 * time.Microsecond)
		w.TakeRate(l, 1)
	})
}

func TestRateLimiterConfig(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		l := ratelimit.New(c, "api", ratelimit.Rate{})
		for what, err := range map[string]error{
			"Try": l.TryAcquire(bg, 1, 0), "Acquire": l.Acquire(bg, 1), "Release": l.Release(bg, 1),
			"UpdateRate": l.UpdateRate(bg, ratelimit.Rate{Permits: 1, Interval: time.Second}),
			"Available":  second(l.Available(bg)), "Config": second(l.Config(bg)),
		} {
			if !errors.Is(err, redlatch.ErrUninitialized) || !strings.HasSuffix(err.Error(), `"api" has no rate; call TrySetRate, or give ratelimit.New one`) || redlatch.IsRetryable(err) {
				t.Errorf("%s: %v", what, err)
			}
		}
		_, err := ratelimit.New(c, "api", ratelimit.Rate{Permits: 1, Interval: time.Second}).Config(bg)
		if !errors.Is(err, redlatch.ErrUninitialized) || !strings.Contains(err.Error(), "or first Acquire") {
			t.Errorf("of one that can be set up: %v", err)
		}
		if w.Server.Exists("api") || w.Server.Exists("{api}:value") || w.Server.Exists("{api}:permits") {
			t.Errorf("left behind: %q", w.Keys())
		}
		first := ratelimit.Rate{Permits: 7, Interval: 1500 * time.Microsecond, KeepAlive: time.Hour}
		for i, want := range []bool{true, false} {
			if set, err := l.TrySetRate(bg, first); err != nil || set != want {
				t.Errorf("TrySetRate, time %d: %v, %v", i, set, err)
			}
			first.Permits++
		}
		want := ratelimit.Rate{Permits: 7, Interval: 2 * time.Millisecond, KeepAlive: time.Hour}
		if r, err := l.Config(bg); err != nil || r != want {
			t.Errorf("configured as %+v (%v)", r, err)
		}
		if ttl := w.Server.TTL("api"); ttl != time.Hour {
			t.Errorf("lasts %v", ttl)
		}
		want = ratelimit.Rate{Permits: 3, Interval: time.Minute, PerClient: true}
		w.SetRate(l, want)
		if r, err := l.Config(bg); err != nil || r != want {
			t.Errorf("configured as %+v (%v)", r, err)
		}
		if ttl := w.Server.TTL("api"); ttl != 0 {
			t.Errorf("without keep-alive it lasts %v", ttl)
		}
		w.Server.HDel("api", "keepAliveTime") // before 3.38
		w.TakeRate(l, 3)
		if r, err := l.Config(bg); err != nil || r != want {
			t.Errorf("configured as %+v (%v)", r, err)
		}
		for _, there := range []bool{true, false} {
			if was, err := l.Delete(bg); err != nil || was != there {
				t.Errorf("Delete: %v, %v", was, err)
			}
		}
		time.Sleep(10 * time.Minute)
		w.WantNoKeys()
	})
}

func second[T any](_ T, err error) error { return err }

// SetRate forgets what was taken, UpdateRate does not.
func TestRateLimiterRateChanges(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		l := w.Limiter(5, time.Second)
		update := func(permits int, interval time.Duration, perClient bool) {
			t.Helper()
			if err := l.UpdateRate(bg, ratelimit.Rate{Permits: permits, Interval: interval, PerClient: perClient}); err != nil {
				t.Fatal(err)
			}
		}
		w.TakeRate(l, 4)
		update(5, time.Second, false)
		wantAvailable(w, l, 1)
		update(10, time.Second, false)
		wantAvailable(w, l, 6)
		update(4, time.Second, false)
		wantAvailable(w, l, 0)
		time.Sleep(500 * time.Millisecond)
		update(10, 400*time.Millisecond, false) // the interval is too short for them now
		wantAvailable(w, l, 10)
		w.TakeRate(l, 3)
		update(10, 400*time.Millisecond, true)
		wantAvailable(w, l, 10)
		w.TakeRate(l, 3)
		wantAvailable(w, l, 7)
		update(10, 400*time.Millisecond, false)
		wantAvailable(w, l, 10)
		w.TakeRate(l, 10)
		w.SetRate(l, ratelimit.Rate{Permits: 2, Interval: time.Second})
		wantAvailable(w, l, 2)
		w.TakeRate(l, 2)

		// More was taken than there may be now: as much goes as is too much.
		w.SetRate(l, ratelimit.Rate{Permits: 10, Interval: time.Second})
		for range 10 {
			w.TakeRate(l, 1)
			time.Sleep(10 * time.Millisecond)
		}
		update(3, time.Second, false)
		w.WantBusy(l, 1, 970*time.Millisecond) // when the eighth goes
		time.Sleep(970 * time.Millisecond)
		wantAvailable(w, l, 1)
	})
}

// Who has a state of its own is not held to an old rate for ever.
func TestRateLimiterLearnsOfAHigherRate(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		l, other := ratelimit.New(w.Client(redlatch.Config{}), "api", ratelimit.Rate{}), ratelimit.New(w.Client(redlatch.Config{}), "api", ratelimit.Rate{})
		w.SetRate(l, ratelimit.Rate{Permits: 10, Interval: time.Second, PerClient: true})
		for range 100 {
			if err := l.Acquire(bg, 1); err != nil {
				t.Fatal(err)
			}
		}
		if err := other.UpdateRate(bg, ratelimit.Rate{Permits: 40, Interval: time.Second, PerClient: true}); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		for range 400 {
			if err := l.Acquire(bg, 1); err != nil {
				t.Fatal(err)
			}
		}
		if d := time.Since(start); d > 20*time.Second {
			t.Errorf("400 permits took %v at 40 a second", d)
		}
	})
}

func TestRateLimiterRelease(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		l := w.Limiter(5, time.Second)
		w.TakeRate(l, 3)
		time.Sleep(900 * time.Millisecond)
		for _, n := range []int{1, 2, 100} { // never more than the rate
			if err := l.Release(bg, n); err != nil {
				t.Fatal(err)
			}
		}
		wantAvailable(w, l, 5)
		w.TakeRate(l, 5)
		time.Sleep(100 * time.Millisecond)
		w.WantBusy(l, 1, 900*time.Millisecond) // what was given back does not come back again
		time.Sleep(900 * time.Millisecond)
		wantAvailable(w, l, 5)

		w.TakeRate(l, 2)
		time.Sleep(300 * time.Millisecond)
		w.TakeRate(l, 3)
		if err := l.Release(bg, 1); err != nil {
			t.Fatal(err)
		}
		w.TakeRate(l, 1)
		w.WantBusy(l, 1, 700*time.Millisecond) // the first: one of two went
		time.Sleep(700 * time.Millisecond)
		wantAvailable(w, l, 1)

		// A local waiter is told, one elsewhere asks.
		w.SetRate(l, ratelimit.Rate{Permits: 5, Interval: time.Hour})
		elsewhere := ratelimit.New(w.Client(redlatch.Config{}), "api", ratelimit.Rate{})
		for _, waiter := range []*ratelimit.Limiter{l, elsewhere} {
			w.TakeRate(l, 5)
			got := locktest.Later(func() error { return waiter.Acquire(bg, 2) })
			time.Sleep(time.Second)
			synctest.Wait()
			start := time.Now()
			if err := l.Release(bg, 5); err != nil {
				t.Fatal(err)
			}
			if err := <-got; err != nil {
				t.Fatal(err)
			}
			if d := time.Since(start); (waiter == l && d > time.Millisecond) || d > 2500*time.Millisecond {
				t.Errorf("got after %v", d)
			}
			if err := l.Release(bg, 5); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// Only those who are served keep it alive, and all of it.
func TestRateLimiterKeepAlive(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		l := ratelimit.New(w.Client(redlatch.Config{}), "api", ratelimit.Rate{})
		w.SetRate(l, ratelimit.Rate{Permits: 2, Interval: time.Minute, KeepAlive: 2 * time.Minute})
		keys := []string{"api", "{api}:value", "{api}:permits"}
		lasts := func(want time.Duration) {
			t.Helper()
			for _, key := range keys {
				if ttl := w.Server.TTL(key); ttl != want {
					t.Fatalf("%s lasts %v, want %v", key, ttl, want)
				}
			}
		}
		w.TakeRate(l, 1)
		time.Sleep(30 * time.Second)
		w.TakeRate(l, 1)
		lasts(2 * time.Minute)
		time.Sleep(10 * time.Second)
		w.WantBusy(l, 1, 20*time.Second)
		wantAvailable(w, l, 0)
		lasts(110 * time.Second)
		time.Sleep(20 * time.Second)
		w.WantBusy(l, 2, 30*time.Second) // one has come back, which is written
		lasts(90 * time.Second)
		if err := l.Release(bg, 1); err != nil {
			t.Fatal(err)
		}
		w.TakeRate(l, 2)
		lasts(2 * time.Minute)
		// A TTL of its own, as expire() of Redisson sets, is all of the state's.
		if err := l.UpdateRate(bg, ratelimit.Rate{Permits: 9, Interval: time.Minute}); err != nil {
			t.Fatal(err)
		}
		lasts(0)
		w.Server.SetTTL("api", time.Hour)
		w.TakeRate(l, 1)
		lasts(time.Hour)
		w.SetRate(l, ratelimit.Rate{Permits: 9, Interval: time.Minute, KeepAlive: time.Minute})
		w.TakeRate(l, 1)
		time.Sleep(10 * time.Minute)
		w.WantNoKeys()
	})
}

// Whatever part of the state is lost: it goes on, and gives no more than it may.
func TestRateLimiterSurvivesTheLossOfAPartOfItsState(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		l := w.Limiter(5, time.Second)
		w.TakeRate(l, 3)
		w.Server.Del("{api}:value") // Redisson would give five more
		wantAvailable(w, l, 2)
		w.WantBusy(l, 3, time.Second)
		w.TakeRate(l, 2)
		w.Server.Del("{api}:permits") // Redisson would fail for ever
		wantAvailable(w, l, 5)
		w.TakeRate(l, 5)
		for _, value := range []string{"17", "nonsense", "-3"} {
			_ = w.Server.Set("{api}:value", value)
			w.WantBusy(l, 1, time.Second)
		}
		time.Sleep(time.Second)
		w.TakeRate(l, 5)
	})
}

func TestRateLimiterRefusesWhatCanNeverBe(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		l := w.Limiter(5, time.Second)
		says := func(err error, words ...string) {
			t.Helper()
			for _, word := range words {
				if err == nil || !strings.Contains(err.Error(), word) {
					t.Errorf("error %v, want one that says %q", err, word)
				}
			}
			if redlatch.IsRetryable(err) {
				t.Errorf("%v is no use to retry", err)
			}
		}
		for _, n := range []int{0, -1, mostPermits + 1} {
			says(l.TryAcquire(bg, n, 0), fmt.Sprint(n), "at least 1")
			says(l.Acquire(bg, n), fmt.Sprint(n), "at least 1")
			if n != 0 { // what was not used may be nothing
				says(l.Release(bg, n), fmt.Sprint(n), "at least 0")
			}
		}
		w.OK(l.Release(bg, 0))
		start := time.Now()
		says(l.TryAcquire(bg, 6, 0), `"api" gives 5`, "6 at once")
		says(l.Acquire(bg, 6), `"api" gives 5`, "6 at once")
		wantAvailable(w, l, 5)
		w.TakeRate(l, 5)
		says(l.Acquire(bg, 6), `"api" gives 5`)
		// Behind others too, and who waits already when the rate becomes lower.
		ctx, cancel := context.WithCancel(bg)
		waits := locktest.Later(func() error { return l.Acquire(ctx, 1) })
		more := locktest.Later(func() error { time.Sleep(time.Millisecond); return l.Acquire(ctx, 5) })
		time.Sleep(2 * time.Millisecond)
		says(l.Acquire(bg, 6), `"api" gives 5`)
		if d := time.Since(start); d != 2*time.Millisecond {
			t.Errorf("took %v", d)
		}
		if err := l.UpdateRate(bg, ratelimit.Rate{Permits: 4, Interval: time.Second}); err != nil {
			t.Fatal(err)
		}
		says(<-more, `"api" gives 4`)
		cancel()
		w.WantErr(<-waits, context.Canceled, redlatch.ErrBusy)

		var none context.Context
		says(l.TryAcquire(none, 1, 0), "nil context")
		says(l.SetRate(none, ratelimit.Rate{Permits: 1, Interval: time.Second}), "nil context")
		says(second(l.Config(none)), "nil context")
		says(l.TryAcquire(bg, 1, -1), "negative")
		for word, r := range map[string]ratelimit.Rate{
			"Permits is 0":      {Interval: time.Second},
			"Permits is -1":     {Permits: -1, Interval: time.Second},
			"Interval is 0s":    {Permits: 1},
			"Interval is 999µs": {Permits: 1, Interval: 999 * time.Microsecond},
			"KeepAlive is -1s":  {Permits: 1, Interval: time.Second, KeepAlive: -time.Second},
			"less than Rate":    {Permits: 1, Interval: time.Second, KeepAlive: time.Second - 1},
		} {
			says(l.SetRate(bg, r), word)
			says(l.UpdateRate(bg, r), word)
			says(second(l.TrySetRate(bg, r)), word)
		}
		c := w.Client(redlatch.Config{})
		says(ratelimit.New(c, "a{b", ratelimit.Rate{}).TryAcquire(bg, 1, 0), "without a '}'")
		_ = w.Server.Set("text", "not a limiter")
		text := ratelimit.New(c, "text", ratelimit.Rate{})
		says(text.TryAcquire(bg, 1, 0), "WRONGTYPE")
		says(text.SetRate(bg, ratelimit.Rate{Permits: 1, Interval: time.Second}), "WRONGTYPE")
		says(second(text.TrySetRate(bg, ratelimit.Rate{Permits: 1, Interval: time.Second})), "WRONGTYPE")
		wantKey(w, "text", "not a limiter")
		_ = c.Close()
		w.WantErr(ratelimit.New(c, "api", ratelimit.Rate{}).TryAcquire(bg, 1, 0), redlatch.ErrClosed)
	})
}

// As many records as would not fit on Lua's stack.
func TestRateLimiterCountsManyRecords(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		l := w.Limiter(20000, time.Minute)
		w.TakeRate(l, 1)
		at := float64(time.Now().UnixMilli())
		for i := range 9000 {
			_, _ = w.Server.ZAdd("{api}:permits", at+float64(i%10), fmt.Sprintf("\x10%016d\x01\x00\x00\x00", i))
		}
		w.Server.Del("{api}:value")
		wantAvailable(w, l, 10999)
		w.TakeRate(l, 10999)
		w.WantBusy(l, 13601, time.Minute+2*time.Millisecond) // 900 records each
		if err := l.Release(bg, 2000); err != nil {
			t.Fatal(err)
		}
		wantAvailable(w, l, 2000)
		time.Sleep(2 * time.Minute)
		w.TakeRate(l, 20000)
		if n := len(records(w, "{api}:permits")); n != 1 {
			t.Errorf("%d records", n)
		}
	})
}
