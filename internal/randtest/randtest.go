// Package randtest lets tests do random things, one after the other.
package randtest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"
)

// walks is how many there are in a test.
const walks = 300

// SeedEnv names the variable that repeats a run: what Seed has given is to be said
// with it.
const SeedEnv = "REDLATCH_RANDOM_SEED"

// Seed returns what chance is to begin with: a number that SeedEnv gives, or
// another one each time.
func Seed() (uint64, error) {
	text := os.Getenv(SeedEnv)
	if text == "" {
		return rand.Uint64(), nil
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", SeedEnv, err)
	}
	return seed, nil
}

// A Rand draws what a walk does: with the same seed, the same walk always the
// same.
type Rand struct {
	*rand.Rand

	t     *testing.T
	steps int
}

// Run calls f for walk after walk, each with other random numbers and longer than
// those before it, and ends with the first that fails: so what fails is short. The
// name of its subtest is its number.
func Run(t *testing.T, f func(t *testing.T, r *Rand)) {
	t.Helper()
	seed, err := Seed()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("to repeat this: %s=%d", SeedEnv, seed)
		}
	})
	for n := range walks {
		r := &Rand{rand.New(rand.NewPCG(seed, uint64(n))), nil, 1 + n/3}
		if !t.Run(strconv.Itoa(n), func(t *testing.T) {
			r.t = t
			f(t, r)
		}) {
			return
		}
	}
}

// Between draws a number from low to high, both included.
func (r *Rand) Between(low, high int) int { return low + r.IntN(high-low+1) }

// Duration draws a duration from low to high, both included, and one that is near
// to low as often as one that is far.
func (r *Rand) Duration(low, high time.Duration) time.Duration {
	return low + time.Duration(r.Uint64()>>r.IntN(64)%uint64(high-low+1))
}

// Bool draws true as often as false.
func (r *Rand) Bool() bool { return r.IntN(2) == 0 }

// Steps does the steps of a walk. Each is one of the actions, which does nothing
// when there is nothing for it to do; check follows on it. A walk that fails says
// which steps it took.
func (r *Rand) Steps(actions map[string]func(), check func()) {
	r.t.Helper()
	var done []string
	r.t.Cleanup(func() {
		if r.t.Failed() {
			r.t.Logf("after %q", done)
		}
	})
	names := slices.Sorted(maps.Keys(actions))
	check()
	for range r.steps {
		name := names[r.IntN(len(names))]
		done = append(done, name)
		actions[name]()
		check()
	}
}
