package fence_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/fence"
	"github.com/redlatch/redlatch/internal/faultnet"
	"github.com/redlatch/redlatch/internal/wire"
	"github.com/redlatch/redlatch/redlatchtest"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

func newKey(tb testing.TB, r driver.Redis, name string, options ...fence.KeyOption) *fence.Key {
	tb.Helper()
	k, err := fence.NewKey(r, name, options...)
	if err != nil {
		tb.Fatal(err)
	}
	return k
}

// lua runs a piece of Lua, past all guards.
func lua(tb testing.TB, r driver.Redis, source string, keys ...string) driver.Reply {
	tb.Helper()
	reply, err := r.Run(bg, driver.NewScript("test", source), keys, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return reply
}

// value reads a key as anybody does, without a token; "" if there is none.
func value(tb testing.TB, r driver.Redis, key string) string {
	tb.Helper()
	return lua(tb, r, "return redis.call('GET', KEYS[1])", key).Str
}

func TestKeyFollowsTheRule(t *testing.T) {
	theRule(t, redlatchtest.NewServer(t).Redis(), "state")
}

// theRule tells on any server what a Key accepts, and what stands in Redis then.
func theRule(t *testing.T, r driver.Redis, name string) {
	t.Helper()
	k := newKey(t, r, name)
	if v, ok, err := k.Get(bg, 1); v != "" || ok || err != nil {
		t.Errorf("Get without a value: %q, %v, %v", v, ok, err)
	}
	for _, token := range []int64{0, -1, math.MinInt64} {
		_, _, err := k.Get(bg, token)
		for _, err := range []error{err, k.Check(bg, token), k.Set(bg, token, "unfenced", 0), k.Delete(bg, token)} {
			if !errors.Is(err, fence.ErrUnfenced) || errors.Is(err, fence.ErrStale) {
				t.Errorf("token %d: %v, want ErrUnfenced", token, err)
			}
		}
	}
	for _, write := range []struct {
		token int64
		value string
	}{{5, "five"}, {5, "five again"}, {9, ""}, {10, "a longer token is a higher one"}} {
		if err := k.Set(bg, write.token, write.value, 0); err != nil {
			t.Errorf("Set with token %d: %v", write.token, err)
		}
		if v, ok, err := k.Get(bg, write.token); v != write.value || !ok || err != nil {
			t.Errorf("Get: %q, %v, %v, want %q", v, ok, err, write.value)
		}
	}
	const kept = "a longer token is a higher one"
	_, ok, err := k.Get(bg, 9)
	wantStale(t, err, 9, 10)
	if ok {
		t.Error("a refused Get found something")
	}
	wantStale(t, k.Set(bg, 9, "stale", 0), 9, 10)
	wantStale(t, k.Delete(bg, 9), 9, 10)
	wantStale(t, k.Check(bg, 1), 1, 10)
	if v := value(t, r, name); v != kept {
		t.Errorf("after refused calls there is %q", v)
	}

	// Lua's numbers cannot tell these tokens apart.
	if err := k.Check(bg, math.MaxInt64-1); err != nil {
		t.Error(err)
	}
	wantStale(t, k.Set(bg, math.MaxInt64-2, "stale", 0), math.MaxInt64-2, math.MaxInt64-1)
	if err := k.Set(bg, math.MaxInt64, kept, 0); err != nil {
		t.Error(err)
	}

	if err := k.Delete(bg, math.MaxInt64); err != nil {
		t.Error(err)
	}
	if _, ok, err := k.Get(bg, math.MaxInt64); ok || err != nil {
		t.Errorf("after Delete: %v, %v", ok, err)
	}
	if err := k.Delete(bg, math.MaxInt64); err != nil {
		t.Errorf("a Delete without a value: %v", err)
	}
	wantStale(t, k.Set(bg, 10, "stale", 0), 10, math.MaxInt64) // the token outlives the value

	// One hash beside the value, in the same slot, with a field for the token and
	// one for each process that has written with it.
	side := wire.Prefix("redlatch_fence", name)
	if wire.Slot(side) != wire.Slot(name) {
		t.Errorf("%s and %s are in different slots", name, side)
	}
	if got := lua(t, r, "return {redis.call('PTTL', KEYS[1]), redis.call('HLEN', KEYS[1]), redis.call('HGET', KEYS[1], 'token')}", side); len(got.List) != 3 ||
		got.List[0].Int != -1 || got.List[1].Int != 2 || got.List[2].Str != "9223372036854775807" {
		t.Errorf("TTL, fields and token of %s: %+v", side, got)
	}
}

func TestKeyNames(t *testing.T) {
	r := redlatchtest.NewServer(t).Redis()
	for _, name := range []string{"", "a{b", "a}b", "a{}b", "}a{"} {
		if _, err := fence.NewKey(r, name); err == nil {
			t.Errorf("key %q was accepted", name)
		}
	}
	theRule(t, r, "orders:{42}:state")
	if _, err := fence.NewKey(nil, "state"); err == nil {
		t.Error("a nil driver was accepted")
	}
}

// The lock itself, or anything else that is no string, is not overwritten by
// whoever gives the guarded key its name.
func TestKeyRefusesOtherTypes(t *testing.T) {
	r := redlatchtest.NewServer(t).Redis()
	otherTypes(t, r)
}

func otherTypes(t *testing.T, r driver.Redis) {
	t.Helper()
	lua(t, r, "redis.call('HSET', KEYS[1], 'owner', 1) return 1", "lock")
	k := newKey(t, r, "lock")
	_, _, err := k.Get(bg, 2)
	for call, err := range map[string]error{"Get": err, "Set": k.Set(bg, 2, "x", 0), "Delete": k.Delete(bg, 2)} {
		var re *driver.RunError
		if !errors.As(err, &re) || re.Code != "WRONGTYPE" || re.Outcome != driver.Refused {
			t.Errorf("%s of a hash: %v, want WRONGTYPE", call, err)
		}
		if redlatch.IsRetryable(err) {
			t.Errorf("%s of a hash is said to be worth trying again", call)
		}
	}
	if got := lua(t, r, "return {redis.call('HGET', KEYS[1], 'owner'), redis.call('EXISTS', KEYS[2])}", "lock", "redlatch_fence:{lock}"); got.List[0].Str != "1" || got.List[1].Int != 0 {
		t.Errorf("the hash, and whether a token was remembered: %+v", got)
	}

	lua(t, r, "redis.call('RPUSH', KEYS[1], 1) return 1", "redlatch_fence:{damaged}")
	var re *driver.RunError
	if err := newKey(t, r, "damaged").Set(bg, 2, "x", 0); !errors.As(err, &re) || re.Code != "WRONGTYPE" || value(t, r, "damaged") != "" {
		t.Errorf("Set with a damaged fence: %v", err)
	}
}

func TestKeyTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := redlatchtest.NewServer(t).Redis()
		k := newKey(t, r, "state")
		if err := k.Set(bg, 1, "x", -time.Second); err == nil {
			t.Error("a negative ttl was accepted")
		}
		if err := k.Set(bg, 1, "x", 1500*time.Microsecond); err != nil {
			t.Fatal(err)
		}
		if ttl := lua(t, r, "return redis.call('PTTL', KEYS[1])", "state").Int; ttl != 2 {
			t.Errorf("1.5 ms became %d ms", ttl)
		}
		if err := k.Set(bg, 2, "x", time.Minute); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if _, ok, err := k.Get(bg, 2); ok || err != nil {
			t.Errorf("after the ttl: %v, %v", ok, err)
		}
		wantStale(t, k.Set(bg, 1, "stale", 0), 1, 2)
		if err := k.Set(bg, 2, "x", 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		wantStale(t, k.Delete(bg, 1), 1, 2)
		if v := value(t, r, "state"); v != "x" {
			t.Errorf("without a ttl there is %q later", v)
		}
	})
}

func TestKeyRemember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := redlatchtest.NewServer(t).Redis()
		if _, err := fence.NewKey(r, "state", fence.Remember(time.Hour-1)); err == nil {
			t.Error("less than an hour was accepted")
		}
		k := newKey(t, r, "state", fence.KeyOption{}, fence.Remember(time.Hour))
		for _, show := range []func() error{
			func() error { return k.Set(bg, 7, "x", 0) },
			func() error { return k.Check(bg, 7) },
			func() error { _, _, err := k.Get(bg, 7); return err },
			func() error { return k.Delete(bg, 7) },
			func() error { return nil },
		} {
			if err := show(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour - time.Second)
			wantStale(t, k.Check(bg, 6), 6, 7) // a refused token keeps nothing alive
			if err := k.Check(bg, 7); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Hour - time.Second)
		wantStale(t, k.Check(bg, 6), 6, 7)
		time.Sleep(time.Second)
		if err := k.Check(bg, 6); err != nil {
			t.Errorf("after an hour without a call: %v", err)
		}
	})
}

// Keys that differ in Remember guard one value: each holder can be as late as the
// longest says.
func TestNoKeyForgetsSoonerThanAnotherWants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := redlatchtest.NewServer(t).Redis()
		short := func(name string) *fence.Key { return newKey(t, r, name, fence.Remember(time.Hour)) }
		long := func(name string) *fence.Key { return newKey(t, r, name, fence.Remember(2*time.Hour)) }
		ever := func(name string) *fence.Key { return newKey(t, r, name) }
		var names []string
		for what, keys := range map[string][]func(name string) *fence.Key{
			"long, short": {long, short}, "short, long": {short, long}, "ever, short": {ever, short}, "short, ever": {short, ever},
		} {
			for _, token := range []int64{6, 7} {
				name := fmt.Sprint(what, token)
				names = append(names, name)
				for i, k := range keys {
					if err := k(name).Check(bg, []int64{token, 7}[i]); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		time.Sleep(2*time.Hour - time.Second)
		for _, name := range names {
			wantStale(t, short(name).Check(bg, 5), 5, 7)
		}
		time.Sleep(time.Second)
		for _, name := range names {
			if err := short(name).Check(bg, 5); errors.Is(err, fence.ErrStale) != strings.Contains(name, "ever") {
				t.Errorf("%s, when the longest time is over: %v", name, err)
			}
		}
	})
}

// The caller's context ends its waiting, not the request, and does not reach the
// connection that others share.
func TestKeyContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := redlatchtest.NewServer(t)
		p := faultnet.New(s.Dial)
		t.Cleanup(p.Close)
		k := newKey(t, s.Through(func(ctx context.Context) (net.Conn, error) { return p.Dial(ctx) }), "state")
		if err := k.Set(nil, 1, "x", 0); err == nil || !strings.Contains(err.Error(), "nil context") { //nolint:staticcheck // the test's purpose
			t.Errorf("with a nil context: %v", err)
		}
		ended, cancel := context.WithCancel(bg)
		cancel()
		if err := k.Set(ended, 1, "x", 0); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "not sent") {
			t.Errorf("with an ended context: %v", err)
		}
		if err := k.Check(bg, 1); err != nil { // the server learns the script that will be late
			t.Fatal(err)
		}
		if err := k.Set(bg, 1, "first", 0); err != nil {
			t.Fatal(err)
		}

		p.SetRule(faultnet.First(isScript, faultnet.Delay(time.Second)))
		short, cancel := context.WithTimeout(bg, 10*time.Millisecond)
		defer cancel()
		start := time.Now()
		if err := k.Set(short, 1, "second", 0); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "may still be executed") {
			t.Errorf("with a context that ends: %v", err)
		}
		if d := time.Since(start); d != 10*time.Millisecond {
			t.Errorf("the call took %v", d)
		}
		time.Sleep(2 * time.Second)
		if v := value(t, s.Redis(), "state"); v != "second" {
			t.Errorf("the request that went on wrote %q", v)
		}
	})
}

type contextKey struct{}

func TestKeyKeepsContextsFromDrivers(t *testing.T) {
	k := newKey(t, &locktest.Tap{Redis: redlatchtest.NewServer(t).Redis(), Seen: func(ctx context.Context) {
		if ctx.Done() != nil || ctx.Value(contextKey{}) != "kept" {
			t.Errorf("a script was run with a context that can end (%v) or has lost its values", ctx.Done() != nil)
		}
	}}, "state")
	values := context.WithValue(bg, contextKey{}, "kept")
	ending, cancel := context.WithCancel(values)
	defer cancel()
	for _, ctx := range []context.Context{values, ending} {
		_, _, err := k.Get(ctx, 1)
		if err := errors.Join(err, k.Check(ctx, 1), k.Set(ctx, 1, "x", 0), k.Delete(ctx, 1)); err != nil {
			t.Error(err)
		}
	}
}

func isScript(r faultnet.Request) bool { return r.Script() != "" }
