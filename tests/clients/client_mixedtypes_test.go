package clients

import (
	"errors"
	"maps"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/internal/wire"
	"github.com/redlatch/redlatch/tests/internal/drivers"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// A client meets an owner id of its own under another type's lock: that is no
// late request's, but a hold of whoever gave two locks one name.
func TestLocksOfTwoTypesUnderOneNameLeaveEachOtherAlone(t *testing.T) {
	for held, of := range locktest.TypesOfLock {
		for asked, other := range locktest.TypesOfLock {
			if held == asked {
				continue
			}
			t.Run(held+" and "+asked, func(t *testing.T) {
				locktest.InFakeTime(t, func(w *locktest.World) {
					c := w.Client(redlatch.Config{})
					h := w.Acquire(bg, of(c, "orders"))
					owners := func() map[string]string {
						fields := w.Fields("orders")
						maps.DeleteFunc(fields, func(field, _ string) bool { return strings.HasSuffix(field, ":expire_time") })
						return fields
					}
					before := owners()
					if _, err := other(c, "orders").TryAcquire(bg, 0); !errors.Is(err, redlatch.ErrBusy) {
						t.Errorf("Try: %v", err)
					}
					got := locktest.Later(func() *redlatch.Hold { return w.Acquire(bg, other(c, "orders")) })
					time.Sleep(15 * time.Second) // polls, and a renewal
					if after := owners(); !maps.Equal(before, after) || h.Err() != nil || !locktest.NoneYet(got) {
						t.Fatalf("Redis shows %v, showed %v; the hold: %v", after, before, h.Err())
					}
					w.Release(h)
					w.Release(<-got)
					synctest.Wait()
					w.WantNoKeys()
				})
			})
		}
	}
}

// What a late request of one type has left in another type's lock is not released
// together with it.
func TestAStrayReadIsNotReleasedWithWhoReadsBesideIt(t *testing.T) {
	for name, of := range map[string]func(*redlatch.Client, string) *redlatch.Lock{"lock": locktest.TypesOfLock["lock"], "fair": locktest.TypesOfLock["fair"]} {
		t.Run(name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				c := w.Client(redlatch.Config{})
				stray := wire.Owner(c.ID(), 1<<40)
				w.Foreigner("orders", stray).Read(time.Minute)
				w.Foreigner("orders", "ffffffff-9152-4c83-822a-67ee2f116a79:52").Read(time.Minute) // behind ours
				want := w.Fields("orders")
				if name == "lock" { // whose release takes its own id away, and nothing else
					delete(want, stray)
				}
				_, err := of(c, "orders").TryAcquire(bg, 0)
				w.WantErr(err, redlatch.ErrBusy)
				synctest.Wait()
				w.WantFields("after Try", "orders", want)
			})
		})
	}
}

// A group of locks keeps times of day in its hash, which are no counts.
func TestATimeOfDayIsNoCountOfReads(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		rw := c.ReadWriteLock("orders")
		expiry, _ := wire.GroupFields("value", locktest.JavaOwner)
		for _, force := range []bool{false, true} {
			h := w.Acquire(bg, rw.Read())
			w.Server.HSet("orders", expiry, strconv.FormatInt(time.Now().UnixMilli(), 10))
			if force {
				_, err := admin.ForceRelease(bg, rw.Read())
				var re *driver.RunError
				if !errors.As(err, &re) || re.Code != "WRONGTYPE" {
					t.Errorf("ForceRelease: %v", err)
				}
			}
			w.Release(h)
			w.WantNoKeys()
		}
	})
}

// Whoever took a read-write lock for a lock of another type was told that somebody
// called "mode" has it.
func TestTheErrorSaysThatTheNameIsAReadWriteLocks(t *testing.T) {
	locktest.OnRealServers(t, func(t *testing.T, s *testserver.Server) {
		c := locktest.ClientOf(t, drivers.Rueidis.Open(t, drivers.Single(s.Addr())), redlatch.Config{})
		for kind, lock := range locktest.TypesOfLock {
			if kind == "read" || kind == "write" || kind == "group" { // which says who has it
				continue
			}
			for side, held := range map[string]*redlatch.Lock{"read": c.ReadWriteLock("orders").Read(), "write": c.ReadWriteLock("orders").Write()} {
				h, err := held.Acquire(bg)
				if err != nil {
					t.Fatal(err)
				}
				_, err = lock(c, "orders").TryAcquire(bg, 0)
				var busy *redlatch.BusyError
				if !errors.As(err, &busy) || busy.Owner != "" || busy.Kind != redlatch.KindReadWrite || !strings.Contains(err.Error(), "a read-write lock has this name") {
					t.Errorf("%s, held to %s: %v", kind, side, err)
				}
				if err := h.Release(bg); err != nil {
					t.Error(err)
				}
			}
		}
	})
}
