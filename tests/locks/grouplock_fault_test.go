package locks

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/redisson"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// groupRequests are the requests that change a group. Each gets a hold of the
// values a and b into the state in which it is sent, arms, and provokes it. It
// returns the holds that are nested in one another then.
var groupRequests = map[string]struct {
	script  string
	provoke func(w *locktest.World, l *redlatch.Lock, arm func()) []*redlatch.Hold
}{
	"take": {"grouplock.take", func(w *locktest.World, l *redlatch.Lock, arm func()) []*redlatch.Hold {
		arm()
		return []*redlatch.Hold{w.Acquire(bg, l)}
	}},
	"fenced take": {"grouplock.take", func(w *locktest.World, l *redlatch.Lock, arm func()) []*redlatch.Hold {
		arm()
		h := w.Acquire(bg, locktest.With(l, redlatch.Fenced()))
		if h.Token() != 1 {
			w.Errorf("token %d", h.Token())
		}
		return []*redlatch.Hold{h}
	}},
	"re-entry": {"grouplock.renew", func(w *locktest.World, l *redlatch.Lock, arm func()) []*redlatch.Hold {
		h := w.Acquire(bg, l)
		arm()
		return []*redlatch.Hold{h, w.Acquire(h.Context(), l)}
	}},
	"partial release": {"grouplock.renew", func(w *locktest.World, l *redlatch.Lock, arm func()) []*redlatch.Hold {
		h := w.Acquire(bg, l)
		inner := w.Acquire(h.Context(), l)
		arm()
		w.Release(inner)
		synctest.Wait()
		return []*redlatch.Hold{h}
	}},
	"renew": {"grouplock.renew", func(w *locktest.World, l *redlatch.Lock, arm func()) []*redlatch.Hold {
		h := w.Acquire(bg, l)
		before := h.Expires()
		arm()
		time.Sleep(15 * time.Second)
		if !h.Expires().After(before) {
			w.Error("not renewed")
		}
		return []*redlatch.Hold{h}
	}},
	"extend": {"grouplock.renew", func(w *locktest.World, l *redlatch.Lock, arm func()) []*redlatch.Hold {
		h := w.Acquire(bg, locktest.With(l, redlatch.Lease(30*time.Second)))
		arm()
		if err := h.Extend(bg, time.Minute); err != nil {
			w.Errorf("Extend: %v", err)
		}
		return []*redlatch.Hold{h}
	}},
	"release": {"grouplock.release", func(w *locktest.World, l *redlatch.Lock, arm func()) []*redlatch.Hold {
		h := w.Acquire(bg, l)
		arm()
		w.Release(h)
		return nil
	}},
	"force": {"grouplock.force", func(w *locktest.World, l *redlatch.Lock, arm func()) []*redlatch.Hold {
		for field, value := range held(locktest.JavaA+":7", 1, time.Now().Add(time.Hour), "a", "b") {
			w.Server.HSet("g", field, value)
		}
		w.Server.SetTTL("g", time.Hour)
		arm()
		if done, err := admin.ForceRelease(bg, l); !done || err != nil {
			w.Errorf("ForceRelease: %v, %v", done, err)
		}
		return nil
	}},
}

// A reply is lost, or the request, or it is executed late: after its retry, after
// the release, while somebody else has the values. Nothing is doubled, lost,
// cut short or left behind.
func TestALostReplyOrALateRequestOfAGroupLock(t *testing.T) {
	for name, request := range groupRequests {
		for _, executed := range []bool{true, false} {
			for _, lateAt := range []string{"never", "at once", "after the release", "in another's term"} {
				t.Run(name+"/"+map[bool]string{true: "reply lost", false: "request lost"}[executed]+"/late "+lateAt, func(t *testing.T) {
					locktest.InFakeTime(t, func(w *locktest.World) {
						var mu sync.Mutex // guards what follows
						armed := false
						late := func() {}
						var d *locktest.Tap
						d = &locktest.Tap{Hook: func(s string, args []string, next func() (driver.Reply, error)) (driver.Reply, error) {
							mu.Lock()
							fire := armed && s == request.script
							if fire {
								armed, late = false, d.Again(s, args)
							}
							mu.Unlock()
							if !fire {
								return next()
							}
							if executed {
								_, _ = next()
							}
							return driver.Reply{}, locktest.ErrReplyLost
						}}
						c, other := w.Tapped(redlatch.Config{}, d), w.Client(redlatch.Config{})
						keep := w.Acquire(bg, redisson.GroupLock(other, "g", []string{"z"})) // the hash is somebody else's as well
						deliver := func(moment string) {
							if moment == lateAt {
								mu.Lock()
								defer mu.Unlock()
								late()
							}
						}
						holds := request.provoke(w, redisson.GroupLock(c, "g", []string{"b", "a"}), func() {
							mu.Lock()
							defer mu.Unlock()
							armed = true
						})
						mu.Lock()
						if armed {
							t.Error("no such request was sent")
						}
						mu.Unlock()
						deliver("at once")
						for n, h := range slices.Backward(holds) {
							wantHeldInGroup(w, h, n+1)
							w.Release(h)
						}
						if len(holds) > 0 || request.script == "grouplock.release" {
							wantNobody(w, "g", "a", "b")
						}
						deliver("after the release")
						if lateAt == "in another's term" {
							h := w.Acquire(bg, redisson.GroupLock(other, "g", []string{"a", "c"}))
							deliver(lateAt)
							wantHeldInGroup(w, h, 1)
							time.Sleep(time.Minute)
							wantHeldInGroup(w, h, 1)
							w.Release(h)
						}
						time.Sleep(15 * time.Second) // the debts of a take are paid by then
						wantNobody(w, "g", "a", "b")
						if err := keep.Err(); err != nil {
							t.Errorf("somebody else's hold: %v", err)
						}
						w.Release(keep)
						wantGroup(w, "g", map[string]string{})
					})
				})
			}
		}
	}
}

// wantHeldInGroup checks that a hold is live and counted so often, for each of
// the values that its owner has.
func wantHeldInGroup(w *locktest.World, h *redlatch.Hold, count int) {
	w.Helper()
	time.Sleep(2 * time.Second) // a count is corrected soon
	if err := h.Err(); err != nil {
		w.Fatal(err)
	}
	c, until := w.Client(redlatch.Config{}), h.Expires() // before Info: it may be renewed at any time
	info, err := admin.New(c).Info(bg, h.Name())
	if err != nil {
		w.Fatal(err)
	}
	n := 0
	for _, holder := range info.Holders {
		if holder.Owner == h.ID() {
			n++
			if holder.Count != count || holder.TTL < time.Until(until) {
				w.Errorf("%+v; want a count of %d and %v or more", holder, count, time.Until(until))
			}
		}
	}
	if n != 2 {
		w.Errorf("%d values are held by %s: %+v", n, h.ID(), info)
	}
}

// wantNobody checks that nothing is stored for values of a group.
func wantNobody(w *locktest.World, group string, values ...string) {
	w.Helper()
	c := w.Client(redlatch.Config{})
	info, err := admin.LockInfo(bg, redisson.GroupLock(c, group, values))
	if err != nil || info.Held() {
		w.Errorf("%+v, %v", info, err)
	}
}
