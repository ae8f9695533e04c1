package locks

import (
	"context"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/observe"
	"github.com/redlatch/redlatch/redisson"
	"github.com/redlatch/redlatch/semaphore"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// A goroutine that works under the context of a hold may be all that is left of
// it. The lock is not released under that goroutine, but once the context is no
// longer used.
func TestAHoldIsNotDroppedWhileItsContextIsUsed(t *testing.T) {
	locktest.Long(t)
	dropped := make(chan observe.DroppedEvent, 100)
	w := locktest.InRealTime(t)
	c := w.Client(redlatch.Config{}, observe.Hooks{Dropped: func(e observe.DroppedEvent) { dropped <- e }})
	several := func(name string) *redlatch.Hold { return w.Acquire(bg, redlatch.MultiLock(c.Lock(name))) }
	permit := func(name string) *redlatch.Hold {
		s := semaphore.NewExpirable(c, name, 0)
		if _, err := s.TrySetPermits(bg, 1); err != nil {
			t.Fatal(err)
		}
		return w.Permit(s)
	}
	used := map[string]context.Context{
		"hold Context":       w.Acquire(bg, c.Lock("hold Context")).Context(),
		"hold With":          w.Acquire(bg, c.Lock("hold With")).With(bg),
		"multi Context":      several("multi Context").Context(),
		"multi With":         several("multi With").With(bg),
		"member Context":     several("member Context").Members()[0].Context(),
		"member With":        several("member With").Members()[0].With(bg),
		"permit Context":     permit("permit Context").Context(),
		"permit With":        permit("permit With").With(bg),
		"read hold Context":  w.Acquire(bg, c.ReadWriteLock("read hold Context").Read()).Context(),
		"group hold Context": w.Acquire(bg, redisson.GroupLock(c, "group hold Context", []string{"a"})).Context(),
	}
	for name, ctx := range used {
		used[name] = context.WithValue(ctx, t, name) // which is all that is used, most often
	}
	next := func() string {
		t.Helper()
		for end := time.Now().Add(locktest.Generous); time.Now().Before(end); {
			runtime.GC()
			select {
			case e := <-dropped:
				return e.Name
			case <-time.After(100 * time.Millisecond):
			}
		}
		t.Fatal("nothing is dropped any more")
		return ""
	}
	for range 2 { // what nobody uses any more is dropped meanwhile
		w.Acquire(bg, c.Lock("nobody's"))
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

func TestADroppedHoldIsReportedAndReleased(t *testing.T) {
	dropped := make(chan observe.DroppedEvent, 1)
	w := locktest.InRealTime(t)
	c := w.Client(redlatch.Config{}, observe.Hooks{Dropped: func(e observe.DroppedEvent) { dropped <- e }})
	if _, err := c.Lock("orders").Acquire(bg); err != nil { // line of the acquisition
		t.Fatal(err)
	}
	for end := time.Now().Add(locktest.Generous); ; {
		if time.Now().After(end) {
			t.Fatal("nobody noticed that the hold was dropped")
		}
		runtime.GC()
		select {
		case e := <-dropped:
			if !strings.Contains(e.Site, "dropped_test.go") {
				t.Fatalf("site %q", e.Site)
			}
			h := w.Acquire(bg, c.Lock("orders")) // comes through only if it was released
			w.Release(h)
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
}
