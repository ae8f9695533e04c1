package wire

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// version8 is a UUID of version 8 and variant 10xx (RFC 9562).
var version8 = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

func TestNewClientID(t *testing.T) {
	const goroutines, each = 8, 1000
	var mu sync.Mutex
	seen := map[string]bool{}
	ones := make([]int, 36) // which positions vary
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for range each {
				id := NewClientID()
				mu.Lock()
				if !version8.MatchString(id) {
					t.Errorf("%s is not a UUID of version 8", id)
				}
				if seen[id] {
					t.Errorf("%s came twice", id)
				}
				seen[id] = true
				for i := range ones {
					if id[i] == '1' {
						ones[i]++
					}
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for i, n := range ones {
		fixed := strings.ContainsRune("-8", rune("xxxxxxxx-xxxx-8xxx-8xxx-xxxxxxxxxxxx"[i]))
		if !fixed && (n < goroutines*each/32 || n > goroutines*each/8) {
			t.Errorf("position %d is a 1 in %d of %d ids: not random", i, n, goroutines*each)
		}
	}
}

func TestOwnerAndClientOf(t *testing.T) {
	id := NewClientID()
	for _, n := range []uint64{0, 1, 42, math.MaxInt64, math.MaxUint64} {
		owner := Owner(id, n)
		if want := id + ":" + strconv.FormatUint(n, 10); owner != want {
			t.Errorf("Owner(%s, %d) = %q, want %q", id, n, owner, want)
		}
		if got, ours := ClientOf(owner); got != id || !ours {
			t.Errorf("ClientOf(%q) = %q, %v", owner, got, ours)
		}
	}
}

func TestClientOfOthers(t *testing.T) {
	const (
		redisson = "285475da-9152-4c83-822a-67ee2f116a79" // version 4
		other    = "285475da-9152-7c83-822a-67ee2f116a79" // version 7
		ours     = "285475da-9152-8c83-822a-67ee2f116a79"
	)
	for _, c := range []struct {
		owner, id string
		redlatch  bool
	}{
		{redisson + ":1", redisson, false},
		{redisson + ":52:write", redisson, false}, // the holder of a write lock
		{other + ":1", other, false},
		{ours + ":1", ours, true},
		{ours + ":52:write", ours, true},
		// Fields of another shape: a hash that is no lock, or another library's.
		{"", "", false},
		{"owner", "", false},
		{"mode", "", false},
		{":", "", false},
		{ours, "", false},
		{ours + ":", "", false},
		{ours + "-1", "", false},
		{ours[1:] + ":1", "", false},
		{" " + ours[1:] + ":1", "", false},
		{strings.ReplaceAll(ours, "-", "0") + ":1", "", false},
		{strings.Repeat("-", 36) + ":1", "", false},
		{strings.Replace(ours, "2", "-", 1) + ":1", "", false}, // a dash too many
		{strings.Replace(ours, "c83", "g83", 1) + ":1", "", false},
		{strings.Repeat("8", 36) + ":1", "", false},
		{"{" + ours + "}:1", "", false},
	} {
		if id, redlatch := ClientOf(c.owner); id != c.id || redlatch != c.redlatch {
			t.Errorf("ClientOf(%q) = %q, %v; want %q, %v", c.owner, id, redlatch, c.id, c.redlatch)
		}
	}
}
