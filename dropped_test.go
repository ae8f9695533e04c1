package redlatch_test

import (
	"context"
	"maps"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
)

// A goroutine that works under the context of a hold may be all that is left of it. The
// lock is not released under that goroutine, but once the context is no longer used.
func TestAHoldIsNotDroppedWhileItsContextIsUsed(t *testing.T) {
	dropped := make(chan redlatch.DroppedEvent, 100)
	w := realTime(t)
	c := w.client(redlatch.Config{Events: redlatch.Events{Dropped: func(e redlatch.DroppedEvent) { dropped <- e }}})
	several := func(name string) *redlatch.MultiHold { return w.acquireMulti(redlatch.MultiLock(c.Lock(name)), bg) }
	permit := func(name string) *redlatch.Permit {
		s := c.ExpirableSemaphore(name)
		if _, err := s.TrySetPermits(bg, 1); err != nil {
			t.Fatal(err)
		}
		return w.permit(s)
	}
	used := map[string]context.Context{
		"hold Context":       w.acquire(c.Lock("hold Context"), bg).Context(),
		"hold With":          w.acquire(c.Lock("hold With"), bg).With(bg),
		"multi Context":      several("multi Context").Context(),
		"multi With":         several("multi With").With(bg),
		"member Context":     several("member Context").Holds()[0].Context(),
		"member With":        several("member With").Holds()[0].With(bg),
		"permit Context":     permit("permit Context").Context(),
		"permit With":        permit("permit With").With(bg),
		"read hold Context":  w.acquire(c.ReadWriteLock("read hold Context").Read(), bg).Context(),
		"group hold Context": w.acquire(c.GroupLock("group hold Context", "a"), bg).Context(),
	}
	for name, ctx := range used {
		used[name] = context.WithValue(ctx, t, name) // which is all that is used, most often
	}
	next := func() string {
		t.Helper()
		for end := time.Now().Add(generous); time.Now().Before(end); {
			runtime.GC()
			select {
			case e := <-dropped:
				return e.Name
			case <-time.After(10 * time.Millisecond):
			}
		}
		t.Fatal("nothing is dropped any more")
		return ""
	}
	for range 2 { // what nobody uses any more is dropped meanwhile
		w.acquire(c.Lock("nobody's"), bg)
		if name := next(); name != "nobody's" {
			t.Fatalf("%s: dropped while it was used", name)
		}
	}
	for name, ctx := range used {
		if ctx.Err() != nil {
			t.Errorf("%s: ended while it was used: %v", name, context.Cause(ctx))
		}
	}
	left := slices.Sorted(maps.Keys(used))
	clear(used)
	for len(left) > 0 {
		name := next()
		if !slices.Contains(left, name) {
			t.Fatalf("%s was dropped, %v is left", name, left)
		}
		left = slices.DeleteFunc(left, func(other string) bool { return other == name })
	}
}
