package otel

import (
	"cmp"
	"maps"
	"runtime"
	"strconv"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/observe"
	"github.com/redlatch/redlatch/redlatchotel"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// wantEnd checks that what is held has ended once, after took if that is not 0,
// and that this is no error. Its span says want and the reason; each permit is
// counted.
func (b *backend) wantEnd(reason observe.EndReason, took time.Duration, want map[string]string) {
	b.w.Helper()
	kind := want["redlatch.kind"]
	span := b.one("hold " + kind)
	want["redlatch.reason"] = string(reason)
	if got := say(span); !maps.Equal(got, want) || span.Status().Code != codes.Unset {
		b.w.Errorf("told as %v with %v, want %v", got, span.Status(), want)
	}
	if got := span.EndTime().Sub(span.StartTime()); took > 0 && got != took {
		b.w.Errorf("told for %v, want %v", got, took)
	}
	all := b.durations("redlatch.hold.duration")
	var ends uint64
	for _, p := range all {
		ends += p.Count
	}
	if p := all["redlatch.kind="+kind+",redlatch.reason="+string(reason)]; p.Count != 1 || strconv.FormatUint(ends, 10) != cmp.Or(want["redlatch.permits"], "1") {
		b.w.Errorf("the histogram has %+v", all)
	}
}

func aLock() map[string]string {
	return map[string]string{"redlatch.kind": string(redlatch.KindLock), "redlatch.name": "orders"}
}

func permits(n string) map[string]string {
	return map[string]string{"redlatch.kind": string(redlatch.KindExpirable), "redlatch.name": locktest.Pool, "redlatch.permits": n}
}

// A span must not last for ever because nobody has released what it is about.
func TestADroppedHoldEndsItsSpan(t *testing.T) {
	for name, story := range map[string]struct {
		want    map[string]string
		acquire func(w *locktest.World, c *redlatch.Client)
	}{
		"hold":   {aLock(), func(w *locktest.World, c *redlatch.Client) { w.Acquire(bg, c.Lock("orders")) }},
		"permit": {permits("1"), func(w *locktest.World, c *redlatch.Client) { w.Permit(w.Permits(c, 1)) }},
	} {
		t.Run(name, func(t *testing.T) {
			w := locktest.InRealTime(t)
			b := newBackend(w, redlatchotel.Options{})
			c := b.watched(w.Client(redlatch.Config{}))
			story.acquire(w, c)
			if !locktest.Within(locktest.Generous, func() bool {
				runtime.GC()
				return len(b.ended("hold "+story.want["redlatch.kind"])) > 0
			}) {
				t.Fatal("nobody noticed that it was dropped")
			}
			w.OK(c.Close())
			b.wantEnd(observe.EndDropped, 0, story.want)
		})
	}
}

// Who has the id holds the permit from then on.
func TestADetachedPermitEndsItsSpan(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		b := newBackend(w, redlatchotel.Options{})
		c := b.watched(w.Client(redlatch.Config{}))
		p := w.Permit(w.Permits(c, 1, redlatch.Lease(time.Minute)))
		time.Sleep(3 * time.Second)
		for range 2 {
			w.Detach(p)
		}
		time.Sleep(time.Second)
		w.OK(p.Release(bg))
		w.OK(c.Close())
		b.wantEnd(observe.EndDetached, 3*time.Second, permits("1"))
	})
}

func TestTheEndOfTheClientEndsSpans(t *testing.T) {
	for name, story := range map[string]struct {
		want    map[string]string
		acquire func(w *locktest.World, c *redlatch.Client) (release func())
	}{
		"hold": {aLock(), func(w *locktest.World, c *redlatch.Client) func() {
			h := w.Acquire(bg, c.Lock("orders"))
			return func() { _ = h.Release(bg) }
		}},
		// The last of several permits says how it ended.
		"permit": {permits("2"), func(w *locktest.World, c *redlatch.Client) func() {
			ps, err := locktest.Each(w.Permits(c, 2, redlatch.Lease(time.Minute)).Acquire(bg, 2))
			w.OK(err)
			w.Detach(ps[0])
			return func() { _ = ps[1].Release(bg) }
		}},
	} {
		t.Run(name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				b := newBackend(w, redlatchotel.Options{})
				c := b.watched(w.Client(redlatch.Config{}))
				release := story.acquire(w, c)
				time.Sleep(3 * time.Second)
				w.OK(c.Close())
				time.Sleep(time.Second)
				release()
				w.OK(c.Close())
				b.wantEnd(observe.EndClosed, 3*time.Second, story.want)
			})
		})
	}
}
