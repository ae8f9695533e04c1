package redlatch_test

import (
	"errors"
	"maps"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/wire"
)

// typesOfLock are those that take a hash for themselves.
var typesOfLock = map[string]func(c *redlatch.Client, name string) *redlatch.Lock{
	"lock":  (*redlatch.Client).Lock,
	"spin":  func(c *redlatch.Client, name string) *redlatch.Lock { return c.SpinLock(name, nil) },
	"fair":  (*redlatch.Client).FairLock,
	"read":  func(c *redlatch.Client, name string) *redlatch.Lock { return c.ReadWriteLock(name).Read() },
	"write": func(c *redlatch.Client, name string) *redlatch.Lock { return c.ReadWriteLock(name).Write() },
	"group": func(c *redlatch.Client, name string) *redlatch.Lock { return c.GroupLock(name, "a", "b") },
}

// A client meets an owner id of its own under another type's lock: that is no
// late request's, but a hold of whoever gave two locks one name.
func TestLocksOfTwoTypesUnderOneNameLeaveEachOtherAlone(t *testing.T) {
	for held, of := range typesOfLock {
		for asked, other := range typesOfLock {
			if held == asked {
				continue
			}
			t.Run(held+" and "+asked, func(t *testing.T) {
				inFakeTime(t, func(w *world) {
					c := w.client(redlatch.Config{})
					h := w.acquire(of(c, "orders"), bg)
					owners := func() map[string]string {
						fields := w.fields("orders")
						maps.DeleteFunc(fields, func(field, _ string) bool { return strings.HasSuffix(field, ":expire_time") })
						return fields
					}
					before := owners()
					if _, err := other(c, "orders").Try(bg); !errors.Is(err, redlatch.ErrBusy) {
						t.Errorf("Try: %v", err)
					}
					got := later(func() *redlatch.Hold { return w.acquire(other(c, "orders"), bg) })
					time.Sleep(15 * time.Second) // polls, and a renewal
					if after := owners(); !maps.Equal(before, after) || h.Err() != nil || !none(got) {
						t.Fatalf("Redis shows %v, showed %v; the hold: %v", after, before, h.Err())
					}
					w.release(h)
					w.release(<-got)
					synctest.Wait()
					w.wantNoKeys()
				})
			})
		}
	}
}

// What a late request of one type has left in another type's lock is not released
// together with it.
func TestAStrayReadIsNotReleasedWithWhoReadsBesideIt(t *testing.T) {
	for name, of := range map[string]func(*redlatch.Client, string) *redlatch.Lock{"lock": typesOfLock["lock"], "fair": typesOfLock["fair"]} {
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, func(w *world) {
				c := w.client(redlatch.Config{})
				stray := wire.Owner(c.ID(), 1<<40)
				w.foreigner("orders", stray).read(time.Minute)
				w.foreigner("orders", "ffffffff-9152-4c83-822a-67ee2f116a79:52").read(time.Minute) // behind ours
				before := w.fields("orders")
				_, err := of(c, "orders").Try(bg)
				w.wantErr(err, redlatch.ErrBusy)
				synctest.Wait()
				w.wantFields("after Try", "orders", before)
			})
		})
	}
}

// A group of locks keeps times of day in its hash, which are no counts.
func TestATimeOfDayIsNoCountOfReads(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c := w.client(redlatch.Config{})
		rw := c.ReadWriteLock("orders")
		expiry, _ := wire.GroupFields("value", java)
		for _, force := range []bool{false, true} {
			h := w.acquire(rw.Read(), bg)
			w.server.HSet("orders", expiry, strconv.FormatInt(time.Now().UnixMilli(), 10))
			if force {
				_, err := rw.Read().ForceRelease(bg)
				var re *driver.RunError
				if !errors.As(err, &re) || re.Code != "WRONGTYPE" {
					t.Errorf("ForceRelease: %v", err)
				}
			}
			w.release(h)
			w.wantNoKeys()
		}
	})
}
