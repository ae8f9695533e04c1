package synchronizers

import (
	"context"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/wire"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// An exclusion is what nobody may break: who holds what, by hand.
type exclusion struct {
	*locktest.World
	mu      sync.Mutex
	holders map[*redlatch.Hold]string // "read", "write"
	family  map[*redlatch.Hold]int    // holds of one nest may stand beside each other
	crashed map[string]bool           // clients that were closed under live holds
	nests   int
	most    int
}

func (x *exclusion) enter(h *redlatch.Hold, what string, nest int) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	if nest == 0 {
		x.nests++
		nest = x.nests
	}
	for other, has := range x.holders {
		if other.Err() == nil && h.Err() == nil && x.family[other] != nest && (what == "write" || has == "write") {
			x.Errorf("%s %s beside %s %s", what, h.ID(), has, other.ID())
		}
	}
	x.holders[h], x.family[h] = what, nest
	x.most = max(x.most, len(x.holders))
	return nest
}

func (x *exclusion) leave(h *redlatch.Hold) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.holders, h)
	delete(x.family, h)
}

// agrees checks what Redis shows when nothing is in flight: an owner for each
// client that holds, with the keys that belong to it, and nobody else but those
// who have crashed.
func (x *exclusion) agrees() {
	x.mu.Lock()
	defer x.mu.Unlock()
	want := map[string]string{}
	for h, what := range x.holders {
		if h.Err() != nil {
			continue
		}
		if what == "write" {
			n, _ := strconv.Atoi(want[h.ID()+":write"])
			want[h.ID()+":write"] = strconv.Itoa(n + 1)
			want["mode"] = "write"
			continue
		}
		want[h.ID()] = "1"
		if want["mode"] == "" {
			want["mode"] = "read"
		}
		if key := wire.ReadTimeout("orders", h.ID(), 1); !x.Server.Exists(key) {
			x.Errorf("%s reads and has no key", h.ID())
		}
	}
	got := x.Fields("orders")
	for field, n := range want {
		if got[field] != n {
			x.Errorf("Redis shows %s = %q, want %q", field, got[field], n)
		}
	}
	for field := range got {
		if id, _ := wire.ClientOf(field); want[field] == "" && field != wire.Mode && !x.crashed[id] {
			x.Errorf("Redis shows %s, who holds nothing; want %v", field, want)
		}
	}
	for _, key := range x.Keys() {
		owner, n, ok := strings.Cut(strings.TrimPrefix(key, "{orders}:"), ":rwlock_timeout:")
		if id, _ := wire.ClientOf(owner); ok && (want[owner] == "" || n != "1") && !x.crashed[id] {
			x.Errorf("there is a key %s; want %v", key, want)
		}
	}
}

// Several clients read, write, nest, cancel, crash and start again at random.
func TestNeverAWriterBesideAnotherHolder(t *testing.T) {
	locktest.WithSeeds(t, 4, func(w *locktest.World, seed uint64) {
		x := &exclusion{World: w, holders: map[*redlatch.Hold]string{}, family: map[*redlatch.Hold]int{}, crashed: map[string]bool{}}
		ctx, cancel := context.WithTimeout(bg, time.Minute)
		defer cancel()
		var wg sync.WaitGroup
		for p := range uint64(3) {
			wg.Go(func() { x.process(ctx, rand.New(rand.NewPCG(seed, p))) })
		}
		wg.Go(func() {
			for ctx.Err() == nil {
				time.Sleep(97 * time.Millisecond)
				synctest.Wait() // nothing is in flight
				x.agrees()
			}
		})
		wg.Wait()
		time.Sleep(5 * time.Minute)
		w.WantNoKeys()
		if x.most < 5 {
			t.Errorf("at most %d holds at a time", x.most)
		}
	})
}

// process is one process after another: each works for a while and then closes
// its client in an orderly way, or crashes.
func (x *exclusion) process(ctx context.Context, r *rand.Rand) {
	for ctx.Err() == nil {
		c := x.Client(redlatch.Config{WatchdogTimeout: time.Duration(10+r.IntN(20)) * time.Second})
		life, end := context.WithTimeout(ctx, time.Duration(5+r.IntN(60))*time.Second)
		var wg sync.WaitGroup
		for range 1 + r.IntN(8) {
			own := rand.New(rand.NewPCG(r.Uint64(), 0))
			wg.Go(func() { x.worker(life, c, own) })
		}
		<-life.Done()
		end()
		if r.IntN(2) == 0 {
			x.mu.Lock()
			x.crashed[c.ID()] = true
			x.mu.Unlock()
			_ = c.Close()
		}
		wg.Wait()
		_ = c.Close()
	}
}

func (x *exclusion) worker(life context.Context, c *redlatch.Client, r *rand.Rand) {
	rw := c.ReadWriteLock("orders")
	for life.Err() == nil {
		what, l := "read", rw.Read()
		if r.IntN(3) == 0 {
			what, l = "write", rw.Write()
		}
		var opts []redlatch.PlainOption
		if r.IntN(3) == 0 {
			opts = append(opts, redlatch.Lease(time.Duration(100+r.IntN(5000))*time.Millisecond))
		}
		ctx, cancel := context.WithTimeout(life, time.Duration(r.IntN(4000))*time.Millisecond)
		var h *redlatch.Hold
		var err error
		if r.IntN(5) == 0 {
			h, err = locktest.With(l, opts...).TryAcquire(ctx, 0)
		} else {
			h, err = locktest.With(l, opts...).Acquire(ctx)
		}
		cancel()
		if err != nil {
			time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond)
			continue
		}
		nest := x.enter(h, what, 0)
		x.nap(h, r, 1+r.IntN(50))
		if r.IntN(3) == 0 {
			x.nested(rw, h, what, nest, r, opts)
		} else {
			x.leave(h)
			_ = h.Release(bg)
		}
		time.Sleep(time.Duration(r.IntN(10)) * time.Millisecond)
	}
}

func (x *exclusion) nap(h *redlatch.Hold, r *rand.Rand, ms int) {
	if r.IntN(40) == 0 {
		ms *= 50
	}
	select {
	case <-h.Context().Done():
	case <-time.After(time.Duration(ms) * time.Millisecond):
	}
}

func (x *exclusion) nested(rw *redlatch.ReadWriteLock, outer *redlatch.Hold, what string, nest int, r *rand.Rand, opts []redlatch.PlainOption) {
	in, l := "read", rw.Read()
	if what == "write" && r.IntN(2) == 0 {
		in, l = "write", rw.Write()
	}
	h, err := locktest.With(l, opts...).Acquire(outer.Context())
	if err == nil {
		x.enter(h, in, nest)
		x.nap(h, r, 1+r.IntN(20))
		if r.IntN(2) == 0 {
			x.leave(h)
			_ = h.Release(bg)
			h = nil
		}
	}
	x.leave(outer)
	_ = outer.Release(bg)
	if h != nil && err == nil {
		x.nap(h, r, 1+r.IntN(20))
		x.leave(h)
		_ = h.Release(bg)
	}
}
