package fence_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/fence"
	"github.com/redlatch/redlatch/internal/randtest"
	"github.com/redlatch/redlatch/redlatchtest"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// A post holds back the requests of a tap, to arrive at any time, and any number
// of times.
type post struct {
	hold bool
	held []func() (driver.Reply, error)
}

func (p *post) hook(_ string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
	if p.hold {
		p.held = append(p.held, next)
		return driver.Reply{}, locktest.ErrReplyLost
	}
	return next()
}

// Whatever arrives late, or twice: the key is as if those calls that were not
// refused had been executed in the order of their tokens, and for each token in
// the order in which they were made. And the sequence of accepted tokens never
// falls.
func TestKeyWithLateRequests(t *testing.T) {
	server := redlatchtest.NewServer(t).Redis()
	steps := []string{"set", "set", "delete", "get", "check", "held set", "held delete", "late", "late"}
	n := 0
	randtest.Run(t, func(t *testing.T, r *randtest.Rand) {
		n++
		p := &post{}
		name := "state:" + strconv.Itoa(n)
		k, err := fence.NewKey(&locktest.Tap{Redis: server, Hook: p.hook}, name)
		if err != nil {
			t.Fatal(err)
		}
		type write struct {
			token int64
			call  int
			value string // "" deletes
		}
		var (
			highest int64
			latest  write // by token, then call
			heldFor []write
		)
		// arrived notes that the server has answered a request.
		arrived := func(token int64, err error) (accepted bool) {
			if token < highest {
				wantStale(t, err, token, highest)
				return false
			}
			if err != nil {
				t.Fatalf("token %d after %d: %v", token, highest, err)
			}
			highest = token
			return true
		}
		wrote := func(w write) {
			if w.token > latest.token || (w.token == latest.token && w.call > latest.call) {
				latest = w
			}
		}
		for call := range r.Between(1, 40) {
			token := int64(r.Between(9, 11))
			switch steps[r.IntN(len(steps))] {
			case "set":
				w := write{token, call + 1, fmt.Sprint("call ", call+1)}
				if arrived(token, k.Set(bg, token, w.value, 0)) {
					wrote(w)
				}
			case "delete":
				if arrived(token, k.Delete(bg, token)) {
					wrote(write{token, call + 1, ""})
				}
			case "get":
				v, ok, err := k.Get(bg, token)
				if arrived(token, err) && (v != latest.value || ok != (v != "")) {
					t.Fatalf("Get returned %q and %v, want %q", v, ok, latest.value)
				}
			case "check":
				arrived(token, k.Check(bg, token))
			case "held set", "held delete":
				p.hold = true
				w := write{token, call + 1, ""}
				do := func() error { return k.Delete(bg, token) }
				if r.Bool() {
					w.value = fmt.Sprint("call ", call+1)
					do = func() error { return k.Set(bg, token, w.value, 0) }
				}
				if err := do(); !errors.Is(err, locktest.ErrReplyLost) {
					t.Fatalf("the driver's error was lost: %v", err)
				}
				p.hold = false
				heldFor = append(heldFor, w)
			case "late":
				if len(heldFor) == 0 {
					continue
				}
				i := r.IntN(len(heldFor))
				w, late := heldFor[i], p.held[i]
				reply, err := late()
				switch {
				case err != nil:
					t.Fatal(err)
				case w.token < highest:
					if reply.Kind != driver.ReplyString || reply.Str != strconv.FormatInt(highest, 10) {
						t.Fatalf("token %d after %d was answered %+v", w.token, highest, reply)
					}
				case reply.Kind != driver.ReplyInt || reply.Int != 1:
					t.Fatalf("token %d after %d was answered %+v", w.token, highest, reply)
				default:
					highest = w.token
					wrote(w)
				}
			}
			if v := value(t, server, name); v != latest.value {
				t.Fatalf("there is %q, want %q", v, latest.value)
			}
		}
	})
}

// Many holders, most of them stale at one time or another, and a reader without a
// token: what it sees never goes back, and what a holder sees is never older than
// its own.
func TestKeyHammer(t *testing.T) {
	hammer(t, redlatchtest.NewServer(t).Redis(), 25)
}

func hammer(t *testing.T, r driver.Redis, rounds int) {
	t.Helper()
	var (
		issued            atomic.Int64
		accepted, refused atomic.Int64
		holders, reader   sync.WaitGroup
		done              = make(chan struct{})
	)
	k := newKey(t, r, "hammered")
	number := func(text string) (n int64) {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Errorf("there is %q", text)
		}
		return n
	}
	if err := k.Set(bg, issued.Add(1), "1", 0); err != nil {
		t.Fatal(err)
	}
	reader.Go(func() {
		for last := int64(1); ; {
			v := number(value(t, r, "hammered"))
			if v < last {
				t.Errorf("after %d there was %d", last, v)
			}
			last = v
			select {
			case <-done:
				return
			default:
			}
		}
	})
	for range 8 {
		holders.Go(func() {
			for range rounds {
				token := issued.Add(1)
				for range 1 + rand.IntN(4) {
					err := k.Set(bg, token, strconv.FormatInt(token, 10), 0)
					var v string
					if err == nil {
						accepted.Add(1)
						v, _, err = k.Get(bg, token)
					}
					switch {
					case errors.Is(err, fence.ErrStale):
						refused.Add(1)
					case err != nil:
						t.Error(err)
					case number(v) != token: // Get was accepted, so no higher one had written
						t.Errorf("the holder of %d saw %s", token, v)
					}
				}
			}
		})
	}
	holders.Wait()
	close(done)
	reader.Wait()
	if accepted.Load() == 0 || refused.Load() == 0 {
		t.Errorf("%d accepted and %d refused show nothing", accepted.Load(), refused.Load())
	}
}
