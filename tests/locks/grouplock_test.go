package locks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/faultnet"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/internal/wire"
	"github.com/redlatch/redlatch/redisson"
	"github.com/redlatch/redlatch/tests/internal/drivers"
	"github.com/redlatch/redlatch/tests/internal/golden"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// groupFields returns a hash as it stands on the server.
func groupFields(w *locktest.World, key string) map[string]string {
	w.Helper()
	fields := map[string]string{}
	if !w.Server.Exists(key) {
		return fields
	}
	names, err := w.Server.HKeys(key)
	if err != nil {
		w.Fatal(err)
	}
	for _, name := range names {
		fields[name] = w.Server.HGet(key, name)
	}
	return fields
}

// held returns what stands in Redis for values of a group that one owner has.
func held(owner string, count int, until time.Time, values ...string) map[string]string {
	fields := map[string]string{}
	for _, v := range values {
		f := wire.GroupField(v)
		expiry, entered := wire.GroupFields(f, owner)
		fields[f], fields[expiry], fields[entered] = owner, strconv.FormatInt(until.UnixMilli(), 10), strconv.Itoa(count)
	}
	return fields
}

func wantGroup(w *locktest.World, key string, want map[string]string) {
	w.Helper()
	if got := groupFields(w, key); !maps.Equal(got, want) {
		w.Fatalf("%s is\n%v, want\n%v", key, got, want)
	}
}

// What an acquisition leaves in Redis is what Redisson's does, to the byte, where
// no clock is allowed to differ.
func TestGroupFieldsAreThoseThatRedissonWrites(t *testing.T) {
	text, err := os.ReadFile(golden.Dir + "group-4.7.0.json")
	if err != nil {
		t.Fatal(err)
	}
	var recorded golden.File
	if err := json.Unmarshal(text, &recorded); err != nil || len(recorded.Vectors) == 0 {
		t.Fatalf("%d vectors, %v", len(recorded.Vectors), err)
	}
	for _, v := range recorded.Vectors {
		step := v.Steps[0]
		if step.Do != "lock" || v.WatchdogMs != 30000 {
			continue
		}
		locktest.InFakeTime(t, func(w *locktest.World) {
			c := w.Client(redlatch.Config{Redisson: redlatch.Redisson{MaxClockSkew: -1}})
			now := time.Now()
			h := w.Acquire(bg, redisson.GroupLock(c, v.Name, step.Values))
			want := map[string]string{}
			expand := strings.NewReplacer("<uuid>:<t1>", h.ID(), "<now>+30000", strconv.FormatInt(now.Add(30*time.Second).UnixMilli(), 10))
			for field, value := range step.After[v.Name].Fields {
				want[expand.Replace(field)] = expand.Replace(value)
			}
			wantGroup(w, v.Name, want)
			if ttl := w.Server.TTL(v.Name); ttl != time.Duration(step.After[v.Name].TTLMs)*time.Millisecond {
				t.Errorf("TTL %v", ttl)
			}
			w.Release(h)
			if w.Server.Exists(v.Name) {
				t.Error("something was left behind")
			}
		})
	}
}

// The order and number of the values do not matter; none at all are refused.
func TestGroupValuesAreASet(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		h := w.Acquire(bg, redisson.GroupLock(c, "g", []string{"b", "a", "b"}))
		wantGroup(w, "g", held(h.ID(), 1, time.Now().Add(31*time.Second), "a", "b"))
		inner, err := redisson.GroupLock(c, "g", []string{"a", "b"}).TryAcquire(h.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		wantGroup(w, "g", held(h.ID(), 2, time.Now().Add(31*time.Second), "a", "b"))
		w.Release(inner)
		synctest.Wait()
		wantGroup(w, "g", held(h.ID(), 1, time.Now().Add(31*time.Second), "a", "b"))
		w.Release(h)
		wantGroup(w, "g", map[string]string{})
		if _, err := redisson.GroupLock(c, "g", nil).Acquire(bg); err == nil || !strings.Contains(err.Error(), "at least one") {
			t.Errorf("no values: %v", err)
		}
		if _, err := redisson.GroupLock(c, "g}", []string{"a"}).Acquire(bg); err == nil {
			t.Error("a bad name was accepted")
		}
		w.Release(w.Acquire(bg, redisson.GroupLock(c, "g", []string{""}))) // an empty one is a value, as for Redisson
	})
}

// All or nothing: a busy value leaves the others untouched, and is waited for
// with no more than one of the values' TTLs.
func TestGroupTakesAllOrNone(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		a, b := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		h := w.Acquire(bg, redisson.GroupLock(a, "g", []string{"x", "y"}))
		before := groupFields(w, "g")
		_, err := redisson.GroupLock(b, "g", []string{"y", "z"}).TryAcquire(bg, 0)
		var busy *redlatch.BusyError
		if !errors.As(err, &busy) || busy.Owner != h.ID() || busy.TTL > 31*time.Second || busy.TTL < 30*time.Second {
			t.Fatalf("%v", err)
		}
		wantGroup(w, "g", before)
		other := w.Acquire(bg, redisson.GroupLock(b, "g", []string{"z"})) // what is free is free
		w.Release(other)

		got := locktest.Later(func() *redlatch.Hold { return w.Acquire(bg, redisson.GroupLock(b, "g", []string{"y", "z"})) })
		synctest.Wait()
		start := time.Now()
		w.Release(h)
		h = <-got
		if waited := time.Since(start); waited > 10*time.Millisecond {
			t.Errorf("woken after %v", waited)
		}
		wantGroup(w, "g", held(h.ID(), 1, time.Now().Add(31*time.Second), "y", "z"))
		w.Release(h)
	})
}

// Sets of one process that overlap exclude each other and never wait for each
// other's place in a line.
func TestOverlappingGroupsOfOneProcessNeverDeadlock(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		sets := [][]string{{"a", "b"}, {"b", "c"}, {"c", "a"}, {"a"}, {"b"}, {"c"}, {"a", "b", "c"}}
		var inside [3]atomic.Int32
		var rounds atomic.Int32
		done := make(chan error, 64)
		ctx, cancel := context.WithTimeout(bg, time.Hour)
		defer cancel()
		for i := range 28 {
			values := sets[i%len(sets)]
			go func() {
				for range 5 {
					err := redisson.GroupLock(c, "g", values).Do(ctx, func(context.Context) error {
						for _, v := range values {
							if inside[v[0]-'a'].Add(1) != 1 {
								return errors.New("two holders of " + v)
							}
						}
						time.Sleep(time.Millisecond)
						for _, v := range values {
							inside[v[0]-'a'].Add(-1)
						}
						rounds.Add(1)
						return nil
					})
					if err != nil {
						done <- err
						return
					}
				}
				done <- nil
			}()
		}
		for range 28 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if rounds.Load() != 140 {
			t.Errorf("%d rounds", rounds.Load())
		}
		wantGroup(w, "g", map[string]string{})
	})
}

// Who holds some of the values would wait for itself.
func TestGroupReentryOfOtherValuesIsRefused(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		ab := w.Acquire(bg, redisson.GroupLock(c, "g", []string{"a", "b"}))
		cd := w.Acquire(ab.Context(), redisson.GroupLock(c, "g", []string{"c", "d"}))
		for _, values := range [][]string{{"a"}, {"b", "c"}, {"a", "b", "c"}, {"d", "e"}} {
			if _, err := redisson.GroupLock(c, "g", values).Acquire(cd.Context()); !errors.Is(err, redlatch.ErrReentry) {
				t.Errorf("%q: %v", values, err)
			}
		}
		e := w.Acquire(cd.Context(), redisson.GroupLock(c, "g", []string{"e"}))
		again := w.Acquire(e.Context(), redisson.GroupLock(c, "g", []string{"a", "b"})) // past holds of others
		plain := w.Acquire(again.Context(), c.Lock("h"))
		for _, h := range []*redlatch.Hold{plain, again, e, cd, ab} {
			w.Release(h)
		}
		wantGroup(w, "g", map[string]string{})
		// Once released it is in nobody's way.
		w.Release(w.Acquire(context.WithoutCancel(ab.Context()), redisson.GroupLock(c, "g", []string{"a"})))
	})
}

// So would who holds them as a member of a MultiLock.
func TestGroupReentryThroughAMultiLockIsRefused(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		m, err := redlatch.MultiLock(redisson.GroupLock(c, "g", []string{"a", "b"}), c.Lock("orders")).Acquire(bg)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := redisson.GroupLock(c, "g", []string{"b", "c"}).Acquire(m.Context()); !errors.Is(err, redlatch.ErrReentry) {
			t.Errorf("%v", err)
		}
		w.Release(w.Acquire(m.Context(), redisson.GroupLock(c, "g", []string{"b", "a"})))
		if err := m.Release(bg); err != nil {
			t.Error(err)
		}
	})
}

// The watchdog raises every value's time with the hash's.
func TestGroupWatchdogRenewsEveryValue(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		h := w.Acquire(bg, redisson.GroupLock(c, "g", []string{"a", "b"}))
		short := w.Acquire(bg, redisson.GroupLock(c, "g", []string{"z"}, redlatch.Lease(time.Minute)))
		for range 60 {
			time.Sleep(7 * time.Second)
			if err := h.Err(); err != nil {
				t.Fatal(err)
			}
			for _, v := range []string{"a", "b"} {
				expiry, _ := wire.GroupFields(wire.GroupField(v), h.ID())
				ms, err := strconv.ParseInt(w.Server.HGet("g", expiry), 10, 64)
				if left := time.Until(time.UnixMilli(ms)); err != nil || left < 20*time.Second || left > 31*time.Second {
					t.Fatalf("%s: %v left, %v", v, left, err)
				}
			}
			if ttl := w.Server.TTL("g"); ttl < 20*time.Second || ttl > time.Minute {
				t.Fatalf("TTL %v", ttl)
			}
		}
		if !errors.Is(short.Err(), redlatch.ErrLost) {
			t.Errorf("the lease: %v", short.Err())
		}
		w.WantErr(short.Release(bg), redlatch.ErrLost) // it has stopped
		synctest.Wait()
		w.Release(h)
		wantGroup(w, "g", map[string]string{})
	})
}

// A hold that lasts longer than the group's other keeps the hash; nothing cuts
// another's time.
func TestGroupTTLIsOnlyRaised(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		a, b := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		long := w.Acquire(bg, redisson.GroupLock(a, "g", []string{"a"}, redlatch.Lease(time.Hour)))
		short := w.Acquire(bg, redisson.GroupLock(b, "g", []string{"b"}, redlatch.Lease(time.Second)))
		if ttl := w.Server.TTL("g"); ttl != time.Hour {
			t.Errorf("TTL %v", ttl)
		}
		w.Release(short)
		if ttl := w.Server.TTL("g"); ttl != time.Hour {
			t.Errorf("TTL %v after the release of another value", ttl)
		}
		if err := long.Extend(bg, 2*time.Hour); err != nil || w.Server.TTL("g") != 2*time.Hour {
			t.Errorf("TTL %v, %v", w.Server.TTL("g"), err)
		}
		w.Release(long)
	})
}

// A holder is told of its lease's end before Redis gives any of its values away.
func TestGroupHolderIsToldBeforeAValueIsGivenAway(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		a, b := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		keep := w.Acquire(bg, redisson.GroupLock(b, "g", []string{"other"})) // keeps the hash
		h := w.Acquire(bg, redisson.GroupLock(a, "g", []string{"a", "b"}, redlatch.Lease(10*time.Second)))
		got := locktest.Later(func() *redlatch.Hold { return w.Acquire(bg, redisson.GroupLock(b, "g", []string{"b"})) })
		<-h.Context().Done()
		select {
		case <-got:
			t.Error("given away before the holder was told")
		default:
		}
		w.WantErr(context.Cause(h.Context()), redlatch.ErrLost)
		w.WantErr(h.Release(bg), redlatch.ErrLost)
		next := <-got // at once: who has lost it says so
		w.Release(next)
		w.Release(keep)
		wantGroup(w, "g", map[string]string{})
	})
}

// One value that is forced away ends the hold; the others are free at once.
func TestGroupHoldIsLostWithAnyOfItsValues(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		h := w.Acquire(bg, redisson.GroupLock(c, "g", []string{"a", "b"}))
		f := wire.GroupField("a") // as Redisson's forceUnlock does it
		expiry, entered := wire.GroupFields(f, h.ID())
		for _, field := range []string{f, expiry, entered} {
			w.Server.HDel("g", field)
		}
		<-h.Context().Done()
		var lost *redlatch.LostError
		if err := h.Err(); !errors.As(err, &lost) || lost.Reason != redlatch.LostGone {
			t.Fatalf("%v", err)
		}
		synctest.Wait()
		wantGroup(w, "g", map[string]string{})
		w.Release(w.Acquire(bg, redisson.GroupLock(c, "g", []string{"a", "b"})))
	})
}

// A force release is for the values that were asked for; their redlatch holders
// are told first.
func TestGroupForceRelease(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		a, b := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		synctest.Wait() // until they can be asked to let go
		ab := w.Acquire(bg, redisson.GroupLock(a, "g", []string{"a", "b"}))
		c := w.Acquire(bg, redisson.GroupLock(a, "g", []string{"c"}))
		acquired := time.Now()
		for field, value := range held(locktest.JavaA+":7", 1, acquired.Add(time.Minute), "j") {
			w.Server.HSet("g", field, value)
		}
		if done, err := admin.ForceRelease(bg, redisson.GroupLock(b, "g", []string{"b", "j", "free"})); !done || err != nil {
			t.Fatal(done, err)
		}
		w.WantErr(ab.Err(), redlatch.ErrLost)
		if err := c.Err(); err != nil {
			t.Errorf("another hold of the group: %v", err)
		}
		synctest.Wait()
		wantGroup(w, "g", held(c.ID(), 1, acquired.Add(31*time.Second), "c"))
		if done, err := admin.ForceRelease(bg, redisson.GroupLock(b, "g", []string{"b", "j"})); done || err != nil {
			t.Error(done, err)
		}
		if done, err := admin.ForceRelease(bg, redisson.GroupLock(a, "g", []string{"c"})); !done || err != nil {
			t.Error(done, err)
		}
		w.WantErr(c.Err(), redlatch.ErrLost)
	})
}

// Info is about the values that were asked for, by their names.
func TestGroupInfo(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		who := redlatch.Identity{Name: "billing", Host: "host-7", PID: 4121}
		c := w.Client(redlatch.Config{Identity: who})
		start := time.Now()
		h := w.Acquire(bg, redisson.GroupLock(c, "g", []string{"b", "a"}))
		other := w.Acquire(bg, redisson.GroupLock(c, "g", []string{"c"}))
		info, err := admin.LockInfo(bg, redisson.GroupLock(c, "g", []string{"c", "a", "free"}))
		if err != nil || info.Kind != redlatch.KindGroup || info.TTL != 30*time.Second || len(info.Holders) != 2 {
			t.Fatalf("%+v, %v", info, err)
		}
		for i, want := range []admin.Holder{
			{Owner: h.ID(), Client: c.ID(), Count: 1, Redlatch: true, TTL: 30 * time.Second, Value: "a", By: who.String(), Since: start, Renewed: true},
			{Owner: other.ID(), Client: c.ID(), Count: 1, Redlatch: true, TTL: 30 * time.Second, Value: "c", By: who.String(), Since: start, Renewed: true},
		} {
			if info.Holders[i] != want {
				t.Errorf("got %+v, want %+v", info.Holders[i], want)
			}
		}
		if info, err := admin.LockInfo(bg, redisson.GroupLock(c, "g", []string{"free"})); err != nil || info.Held() || info.TTL != 0 {
			t.Errorf("%+v, %v", info, err)
		}
		w.Release(h)
		w.Release(other)
	})
}

// Redisson judges by its clock, which may be off by Config.Redisson.MaxClockSkew:
// a value of its is believed so much longer, one of ours is written so much later.
func TestGroupAllowsForRedissonsClock(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{Redisson: redlatch.Redisson{MaxClockSkew: 2 * time.Second}})
		for field, value := range held(locktest.JavaA+":7", 3, time.Now().Add(10*time.Second), "a") {
			w.Server.HSet("g", field, value)
		}
		w.Server.SetTTL("g", time.Hour) // of another value, so to speak
		start := time.Now()
		h := w.Acquire(bg, redisson.GroupLock(c, "g", []string{"a"}))
		if waited := time.Since(start); waited < 12*time.Second || waited > 13*time.Second {
			t.Errorf("waited %v", waited)
		}
		// Nothing is left of the one whose time was over.
		wantGroup(w, "g", held(h.ID(), 1, time.Now().Add(32*time.Second), "a"))
		w.Release(h)
	})
}

// With Fenced each acquisition of the group has the next token.
func TestGroupTokens(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		a := w.Acquire(bg, redisson.GroupLock(c, "g", []string{"a", "b"}, redlatch.Fenced()))
		b := w.Acquire(bg, redisson.GroupLock(c, "g", []string{"c"}, redlatch.Fenced()))
		if a.Token() != 1 || b.Token() != 2 {
			t.Errorf("tokens %d and %d", a.Token(), b.Token())
		}
		w.Release(a)
		w.Release(b)
	})
}

// A re-entry under WithOwner counts, also in a group.
func TestGroupUnderWithOwner(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		ctx := redlatch.WithOwner(bg)
		h := w.Acquire(ctx, redisson.GroupLock(c, "g", []string{"a"}))
		other := w.Acquire(ctx, redisson.GroupLock(c, "g", []string{"b"})) // not the same lock
		again := w.Acquire(ctx, redisson.GroupLock(c, "g", []string{"a"}))
		if again.ID() != h.ID() || other.ID() == h.ID() {
			t.Errorf("owners %s, %s, %s", h.ID(), again.ID(), other.ID())
		}
		for _, h := range []*redlatch.Hold{h, other, again} {
			w.Release(h)
		}
		wantGroup(w, "g", map[string]string{})
	})
}

// An owner that has one of the values waited for itself, for ever.
func TestGroupUnderWithOwnerIsRefusedWhatItsOwnerHasInPart(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		ctx := redlatch.WithOwner(bg)
		ab := w.Acquire(ctx, redisson.GroupLock(c, "g", []string{"a", "b"}))
		again := w.Acquire(ctx, redisson.GroupLock(c, "g", []string{"a", "b"}))
		w.Release(ab)
		_, err := redisson.GroupLock(c, "g", []string{"b", "c"}).TryAcquire(ctx, time.Hour)
		w.WantErr(err, redlatch.ErrReentry)
		cd := w.Acquire(ctx, redisson.GroupLock(c, "g", []string{"c", "d"}))
		_, err = redisson.GroupLock(c, "g", []string{"b", "c"}).TryAcquire(redlatch.WithOwner(bg), time.Second)
		w.WantErr(err, redlatch.ErrBusy) // of somebody else
		w.Release(again)
		w.Release(cd)
		w.Release(w.Acquire(ctx, redisson.GroupLock(c, "g", []string{"b", "c"})))
		wantGroup(w, "g", map[string]string{})
	})
}

// Waiters of the same values stand in one line: a release costs one try, however
// many they are.
func TestGroupWaitersOfTheSameValuesTryOneAtATime(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		takes := 0
		d := &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "grouplock.take" {
				takes++ // one client, and one try at a time
			}
			return next()
		}}
		c := w.Tapped(redlatch.Config{}, d)
		h := w.Acquire(bg, redisson.GroupLock(c, "g", []string{"a"}))
		ctx, cancel := context.WithCancel(bg)
		const n = 100
		done := make(chan error, n)
		for range n {
			go func() { _, err := redisson.GroupLock(c, "g", []string{"a"}).Acquire(ctx); done <- err }()
		}
		synctest.Wait()
		if takes > 3 {
			t.Errorf("%d tries", takes)
		}
		cancel()
		for range n {
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
		w.Release(h)
	})
}

// Close leaves a group's values to their time, and ends the holds.
func TestCloseEndsGroupHolds(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		h := w.Acquire(bg, redisson.GroupLock(c, "g", []string{"a"}))
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		w.WantErr(h.Err(), redlatch.ErrClosed)
		if len(groupFields(w, "g")) != 3 {
			t.Error("released under a running section")
		}
	})
}

// A re-entry creates nothing: it finds that one of the values is somebody else's.
func TestGroupReentryFindsALoss(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		h := w.Acquire(bg, redisson.GroupLock(c, "g", []string{"a", "b"}))
		until := time.Now().Add(time.Hour)
		theirs := held(locktest.JavaA+":7", 1, until, "a")
		expiry, entered := wire.GroupFields(wire.GroupField("a"), h.ID())
		w.Server.HDel("g", expiry)
		w.Server.HDel("g", entered)
		for field, value := range theirs {
			w.Server.HSet("g", field, value)
		}
		if _, err := redisson.GroupLock(c, "g", []string{"a", "b"}).Acquire(h.Context()); !errors.Is(err, redlatch.ErrLost) {
			t.Errorf("%v", err)
		}
		w.WantErr(h.Err(), redlatch.ErrLost)
		synctest.Wait()
		wantGroup(w, "g", theirs)
	})
}

// What the embedded server makes of the scripts, real ones make of them too.
func TestGroupOnRealServers(t *testing.T) {
	locktest.OnRealServers(t, func(t *testing.T, s *testserver.Server) {
		const lease = 10 * time.Minute
		proxy := faultnet.New(s.Dial)
		t.Cleanup(proxy.Close)
		addr, err := proxy.Listen()
		if err != nil {
			t.Fatal(err)
		}
		a := locktest.ClientOf(t, drivers.Goredis.Open(t, drivers.Single(addr)), redlatch.Config{WatchdogTimeout: lease})
		b := locktest.ClientOf(t, drivers.Goredis.Open(t, drivers.Single(s.Addr())), redlatch.Config{WatchdogTimeout: lease})
		h, err := redisson.GroupLock(a, "g", []string{"a", "b"}, redlatch.Fenced()).Acquire(bg)
		if err != nil || h.Token() != 1 {
			t.Fatal(h, err)
		}
		inner, err := redisson.GroupLock(a, "g", []string{"a", "b"}).Acquire(h.Context())
		if err != nil {
			t.Fatal(err)
		}
		info, err := admin.LockInfo(bg, redisson.GroupLock(b, "g", []string{"b", "c"}))
		if err != nil || len(info.Holders) != 1 || info.Holders[0].Count != 2 || info.Holders[0].Value != "b" || info.TTL > lease || info.TTL < lease/2 {
			t.Fatalf("%+v, %v", info, err)
		}
		if err := inner.Release(bg); err != nil {
			t.Fatal(err)
		}
		if _, err := redisson.GroupLock(b, "g", []string{"b", "c"}).TryAcquire(bg, 0); !errors.Is(err, redlatch.ErrBusy) {
			t.Fatal(err)
		}
		before := h.Expires()
		got := locktest.Later(func() error {
			h, err := redisson.GroupLock(b, "g", []string{"b", "c"}).Acquire(bg)
			if err == nil {
				err = h.Release(bg)
			}
			return err
		})
		renewed := func() bool { return h.Expires().After(before) }
		pause := 100 * time.Millisecond
		if !locktest.Within(locktest.Generous, func() bool { // it is renewed when its client loses a connection that it listens by
			proxy.BreakAll()
			pause *= 2 // a busy machine does not connect and renew within the first
			return locktest.Within(pause, renewed)
		}) || h.Err() != nil {
			t.Errorf("not renewed: %v", h.Err())
		}
		if err := h.Release(bg); err != nil {
			t.Error(err)
		}
		if err := <-got; err != nil {
			t.Error(err)
		}
		c := locktest.ClientOf(t, drivers.Goredis.Open(t, drivers.Single(s.Addr())), redlatch.Config{WatchdogTimeout: lease})
		h, err = redisson.GroupLock(c, "g", []string{"a"}).Acquire(bg)
		if err != nil {
			t.Fatal(err)
		}
		if !locktest.Within(locktest.Generous, func() bool { return fmt.Sprint(s.MustDo("PUBSUB", "CHANNELS", "redlatch_control:"+c.ID())) != "[]" }) {
			t.Fatal("the holder does not listen")
		}
		if done, err := admin.ForceRelease(bg, redisson.GroupLock(b, "g", []string{"a"})); !done || err != nil {
			t.Error(done, err)
		}
		if !locktest.Within(locktest.Generous, func() bool { return errors.Is(h.Err(), redlatch.ErrLost) }) {
			t.Error("the holder was not told")
		}
		if left := s.MustDo("EXISTS", "g"); left != int64(0) {
			t.Errorf("left behind: %v", s.MustDo("HGETALL", "g"))
		}
	})
}

// Java's Kryo5Codec has other names for the values: both sides had the same value,
// and nobody noticed.
func TestAGroupWhoseCodecIsNotOursIsRefused(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		for codec, refused := range map[string]bool{
			"": false, "StringCodec": false, "org.redisson.client.codec.StringCodec": false, "org.redisson.client.codec.LongCodec": false, "ByteArrayCodec": false,
			"org.redisson.codec.Kryo5Codec": true, "Kryo5Codec": true, "com.example.StringCodec": true, "org.redisson.client.codec.StringCodec with settings": true, "unknown": true,
		} {
			c := w.Client(redlatch.Config{Redisson: redlatch.Redisson{Codec: codec}})
			h, err := redisson.GroupLock(c, "stock", []string{"a", "b"}).TryAcquire(bg, 0)
			if !refused {
				w.OK(err)
				w.Release(h)
				continue
			}
			w.WantErr(err, redlatch.ErrInvalid)
			if !strings.Contains(err.Error(), strconv.Quote(codec)) || !strings.Contains(err.Error(), "give them StringCodec") ||
				!strings.Contains(err.Error(), "codec: !<org.redisson.client.codec.StringCodec> {}") { // the way for who has a file and no Config
				t.Errorf("%q: %v", codec, err)
			}
			w.WantErr(redisson.GroupLock(c, "stock", nil).Do(bg, nil), redlatch.ErrInvalid)
			_, err = redlatch.MultiLock(redisson.GroupLock(c, "stock", []string{"a"}), c.Lock("x")).Acquire(bg)
			w.WantErr(err, redlatch.ErrInvalid)
			w.Release(w.Acquire(bg, c.Lock("orders"))) // no other lock depends on it
		}
		if w.Server.Exists("stock") {
			t.Error("a value is held")
		}
	})
}
