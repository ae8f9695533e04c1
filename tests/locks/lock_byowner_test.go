package locks

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/redisson"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// Steps of one work that are processes of their own share a lock by its owner: one
// acquires it and ends, another one extends it, a third one releases it. Nobody's
// lock but that owner's is touched.
func TestALockOverSeveralProcesses(t *testing.T) {
	for name, lock := range map[string]func(c *redlatch.Client) *redlatch.Lock{
		"plain":  func(c *redlatch.Client) *redlatch.Lock { return c.Lock("deploy") },
		"fenced": func(c *redlatch.Client) *redlatch.Lock { return c.Lock("deploy", redlatch.Fenced()) },
		"fair":   func(c *redlatch.Client) *redlatch.Lock { return c.FairLock("deploy") },
		"spin":   func(c *redlatch.Client) *redlatch.Lock { return redisson.SpinLock(c, "deploy", nil) },
	} {
		t.Run(name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				first, others := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
				h := w.Acquire(bg, locktest.With(lock(first), redlatch.Lease(time.Minute)))
				owner := h.ID()
				w.OK(first.Close())
				ttl := func(want time.Duration) {
					t.Helper()
					if ttl := w.Server.TTL("deploy"); ttl != want {
						t.Errorf("it ends in %v, want %v", ttl, want)
					}
				}
				ttl(time.Minute)
				l := lock(w.Client(redlatch.Config{}))
				w.OK(l.ExtendID(bg, owner, time.Second)) // which cuts nothing short
				ttl(time.Minute)
				w.OK(l.ExtendID(bg, owner, time.Hour))
				ttl(time.Hour)

				var next *redlatch.Hold
				got := locktest.Later(func() (err error) {
					next, err = lock(others).Acquire(bg)
					return err
				})
				time.Sleep(time.Minute)
				start := time.Now()
				w.OK(l.ReleaseID(bg, owner))
				w.OK(<-got)
				if d := time.Since(start); name != "spin" && d > 10*time.Millisecond {
					t.Errorf("the next one got it after %v", d)
				}
				w.WantErr(l.ReleaseID(bg, owner), redlatch.ErrNotHeld)
				w.WantErr(l.ExtendID(bg, owner, time.Hour), redlatch.ErrNotHeld)
				w.OK(next.Err())
				w.Release(next)
				// What came with a job, say, is shown so that it does no harm to a terminal or a
				// log.
				if err := l.ReleaseID(bg, owner+"\n\x1b[2J"); !errors.Is(err, redlatch.ErrNotHeld) || strings.ContainsAny(err.Error(), "\n\x1b") {
					t.Errorf("an id with control characters: %q", err)
				}

				h = w.Acquire(bg, l)
				for what, bad := range map[string]error{
					"own":      l.ReleaseID(bg, h.ID()),
					"no owner": l.ReleaseID(bg, "42"),
					"empty":    l.ExtendID(bg, "", time.Second),
					"lease":    l.ExtendID(bg, owner, 0),
				} {
					if bad == nil {
						t.Errorf("%s is accepted", what)
					}
				}
				w.Release(h)
				w.OK(w.Server.Set("deploy", "of somebody else"))
				for _, err := range []error{l.ReleaseID(bg, owner), l.ExtendID(bg, owner, time.Hour)} {
					if err == nil || !strings.Contains(err.Error(), `"deploy" is a string`) {
						t.Errorf("a key of another type: %v", err)
					}
				}
				err := l.ExtendID(bg, owner, time.Hour)
				if code := driver.Failure(err).Code; code != "WRONGTYPE" || !strings.Contains(err.Error(), "WRONGTYPE") {
					t.Errorf("code %q of %v, want WRONGTYPE", code, err)
				}
			})
		})
	}
	locktest.InFakeTime(t, func(w *locktest.World) {
		a, b := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		h := w.Acquire(bg, a.ReadWriteLock("deploy").Write())
		if err := b.ReadWriteLock("deploy").Write().ReleaseID(bg, h.ID()); err == nil {
			t.Error("a side of a read-write lock is accepted")
		}
		w.Release(h)
	})
}

// An extension that replicas do not know of is lost with the primary.
func TestAnExtensionByItsOwnerThatReplicasDoNotKnowDoesNotCount(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		h := w.Acquire(bg, w.Client(redlatch.Config{}).Lock("deploy", redlatch.Lease(time.Minute)))
		c, replicas := w.Acking(redlatch.Config{Acks: redlatch.AckRequired, AckReplicas: 2}, 2, 0)
		w.WantAck(c.Lock("deploy").ExtendID(bg, h.ID(), time.Hour), "deploy", 0, 2)
		w.WantErr(c.Lock("deploy").ExtendID(bg, h.ID()+"7", time.Hour), redlatch.ErrNotHeld)
		replicas.Follow(2, 2)
		w.OK(c.Lock("deploy").ExtendID(bg, h.ID(), time.Hour))
		w.Release(h)
	})
}
