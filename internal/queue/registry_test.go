package queue

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

type shared struct {
	Users

	key string
}

// A known is what a registry must have.
type known struct {
	x     *shared
	users int
	until time.Time // when it need not be kept any more
}

// Whoever comes and leaves, and however long things are kept, there is one thing
// by a key for as long as somebody uses it or it is to be kept, and not longer.
func TestARegistryForgetsWhatNobodyUses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for seed := range uint64(100) {
			useARegistry(t, seed)
		}
	})
}

func useARegistry(t *testing.T, seed uint64) {
	var r Registry[string, *shared]
	want := map[string]*known{}
	rnd := rand.New(rand.NewPCG(seed, 0))
	for step := range 200 {
		key := string(rune('a' + rnd.IntN(2)))
		k := want[key]
		switch what := rnd.IntN(7); {
		case what < 2:
			x := r.Get(key, func() *shared { return &shared{key: key} })
			if k == nil {
				k = &known{x: x}
				want[key] = k
			}
			k.users++
			if x != k.x || x.key != key {
				t.Fatalf("seed %d, step %d: there is another %s", seed, step, key)
			}
		case what == 2:
			time.Sleep(100*time.Millisecond + time.Duration(rnd.Int64N(int64(3*time.Second)))) // not at the moment that a timer ends
			synctest.Wait()
		case k == nil || k.users == 0:
		case what == 3:
			k.users++
			r.Retain(k.x)
		case what == 4:
			d := time.Duration(1+rnd.IntN(3)) * time.Second
			if until := time.Now().Add(d); until.After(k.until) {
				k.until = until
			}
			r.Keep(key, k.x, d)
		default:
			k.users--
			idle := false
			forgotten := r.Put(key, k.x, func() { idle = true })
			if idle != (k.users == 0) || forgotten != (k.users == 0 && !k.until.After(time.Now())) {
				t.Fatalf("seed %d, step %d: %s is idle: %v, forgotten: %v", seed, step, key, idle, forgotten)
			}
		}
		has(t, seed, step, &r, want)
	}
}

// has looks whether the registry has what it should, and nothing else.
func has(t *testing.T, seed uint64, step int, r *Registry[string, *shared], want map[string]*known) {
	t.Helper()
	for key, k := range want {
		kept := k.until.After(time.Now())
		if k.users == 0 && !kept {
			delete(want, key)
			k.x = nil
		} else if got := r.Kept(k.x); got != kept {
			t.Fatalf("seed %d, step %d: %s is kept: %v", seed, step, key, got)
		}
		if r.Find(key) != k.x {
			t.Fatalf("seed %d, step %d: there is %p by %s, want %p", seed, step, r.Find(key), key, k.x)
		}
	}
	if n := len(r.All()); n != len(want) {
		t.Fatalf("seed %d, step %d: there are %d, want %d", seed, step, n, len(want))
	}
}
