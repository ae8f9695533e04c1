package clients

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/observe"
	"github.com/redlatch/redlatch/redisson"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// Whatever the user has called, events name the user's line: not one of this
// library, and none above it.
func TestEventsNameTheLineThatAcquired(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var sites []string
		c := w.Client(redlatch.Config{}, observe.Hooks{Lost: func(e observe.LostEvent) { sites = append(sites, e.Site) }})
		var kept []any // or they would be dropped before they are lost
		at := func(h any, _ error) string {
			kept = append(kept, h)
			_, file, line, _ := runtime.Caller(1)
			return fmt.Sprintf("%s:%d", file, line)
		}
		check := func(way string, want ...string) {
			t.Helper()
			synctest.Wait()
			if !slices.Equal(sites, want) {
				t.Errorf("%s: lost at %v, want %v", way, sites, want)
			}
			sites = nil
		}
		force := func(release func() (bool, error)) func(context.Context) error {
			return func(context.Context) error {
				released, err := release()
				if !released || err != nil {
					t.Errorf("ForceRelease: %v, %v", released, err)
				}
				return nil
			}
		}
		rw := c.ReadWriteLock("rw")
		for kind, l := range map[string]*redlatch.Lock{
			"plain": c.Lock("plain"), "fair": c.FairLock("fair"), "fenced": c.Lock("fenced", redlatch.Fenced()), "spin": redisson.SpinLock(c, "spin", nil),
			"striped": c.StripedLock("striped", 4).For("key"), "group": redisson.GroupLock(c, "group", []string{"a"}), "read": rw.Read(), "write": rw.Write(),
		} {
			lose := force(func() (bool, error) { return admin.ForceRelease(bg, l) })
			site := at(l.Acquire(bg))
			_ = lose(bg)
			check(kind+" Acquire", site)
			site = at(l.TryAcquire(bg, 0))
			_ = lose(bg)
			check(kind+" Try", site)
			site = at(nil, l.Do(bg, lose))
			check(kind+" Do", site)
			site = at(l.TryDo(bg, 0, lose))
			check(kind+" TryDo", site)
			owner := redlatch.WithOwner(bg)
			site = at(l.Acquire(owner))
			again := at(l.Acquire(owner))
			_ = lose(bg)
			check(kind+" WithOwner", again, site)
			outer := w.Acquire(bg, l)
			site = at(l.Acquire(outer.Context()))
			w.Release(outer)
			_ = lose(bg)
			check(kind+" nested", site)
		}
		for kind, m := range map[string]*redlatch.Lock{
			"MultiLock":          redlatch.MultiLock(c.Lock("a")),
			"MultiLock together": redlatch.MultiLock(c.Lock("a"), c.Lock("b")),
			"RedLock":            redlatch.RedLock(c.Lock("a")),
		} {
			lose, each := force(func() (bool, error) { return admin.ForceRelease(bg, m) }), len(locktest.Members(m))
			site := at(m.Acquire(bg))
			_ = lose(bg)
			check(kind+" Acquire", slices.Repeat([]string{site}, each)...)
			w.WantErr(kept[len(kept)-1].(*redlatch.Hold).Release(bg), redlatch.ErrLost)
			site = at(m.TryAcquire(bg, 0))
			_ = lose(bg)
			check(kind+" Try", slices.Repeat([]string{site}, each)...)
			w.WantErr(kept[len(kept)-1].(*redlatch.Hold).Release(bg), redlatch.ErrLost)
			site = at(nil, m.Do(bg, lose))
			check(kind+" Do", slices.Repeat([]string{site}, each)...)
			site = at(m.TryDo(bg, 0, lose))
			check(kind+" TryDo", slices.Repeat([]string{site}, each)...)
		}
		s := w.Permits(c, 2)
		lose := func() {
			if _, err := s.Delete(bg); err != nil {
				t.Fatal(err)
			}
		}
		site := at(s.Acquire(bg, 1))
		lose()
		check("permit Acquire", site)
		s = w.Permits(c, 2)
		site = at(s.TryAcquire(bg, 1, 0))
		lose()
		check("permit Try", site)
		s = w.Permits(c, 2)
		site = at(locktest.Each(s.Acquire(bg, 2)))
		lose()
		check("permits Acquire of several", site, site)
		s = w.Permits(c, 2)
		site = at(locktest.Each(s.TryAcquire(bg, 2, 0)))
		lose()
		check("permits TryMany", site, site)
		lost := func(context.Context) error {
			lose()
			return nil
		}
		s = w.Permits(c, 2)
		site = at(nil, s.Do(bg, 1, lost))
		check("permit Do", site)
		s = w.Permits(c, 2)
		site = at(s.TryDo(bg, 1, 0, lost))
		check("permit TryDo", site)
		runtime.KeepAlive(kept)
	})
}
