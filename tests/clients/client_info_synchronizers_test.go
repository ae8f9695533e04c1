package clients

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/barrier"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/internal/wire"
	"github.com/redlatch/redlatch/latch"
	"github.com/redlatch/redlatch/ratelimit"
	"github.com/redlatch/redlatch/semaphore"
	"github.com/redlatch/redlatch/tests/internal/drivers"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// putString makes a string; a ttl of 0 is none.
func putString(w *locktest.World, key, value string, ttl time.Duration) {
	w.Helper()
	if err := w.Server.Set(key, value); err != nil {
		w.Fatal(err)
	}
	if ttl > 0 {
		w.Server.SetTTL(key, ttl)
	}
}

// putScore adds a member to a sorted set.
func putScore(w *locktest.World, key string, ms int64, member string) {
	w.Helper()
	if _, err := w.Server.ZAdd(key, float64(ms), member); err != nil {
		w.Fatal(err)
	}
}

// permitID returns the bytes of an id, as they stand in Redis, and the id as the
// API has it.
func permitID(n byte) (raw, hex string) {
	return strings.Repeat(string([]byte{n}), 16), strings.Repeat(strconv.FormatUint(uint64(n)+256, 16)[1:], 16)
}

// rateRecord is what Redisson stores of permits that a limiter has given.
func rateRecord(n byte) string {
	return "\x10" + strings.Repeat("r", 16) + string([]byte{n, 0, 0, 0})
}

// putSynchronizers makes one of each, as Redisson does, and a barrier; and what
// other applications have. It returns what Info shall say of each.
func putSynchronizers(w *locktest.World) (want []admin.Info) {
	now := time.Now()
	in := func(d time.Duration) int64 { return now.Add(d).UnixMilli() }
	live, liveHex := permitID(0x9a)
	ever, everHex := permitID(0x01)
	dead, _ := permitID(0xff)
	old := strings.Repeat("0a", 16) // Redisson before 3.17

	putString(w, "permits", "3", 0)
	putScore(w, "{permits}:timeout", in(20*time.Second), live)
	putScore(w, "{permits}:timeout", 922337203685477, ever)
	putScore(w, "{permits}:timeout", in(-time.Second), dead)
	putString(w, "{tag}permits", "-1", time.Hour)
	putScore(w, "{tag}permits:timeout", in(time.Minute), old)
	put(w, "limiter", time.Hour, "rate", "10", "interval", "60000", "type", "0", "keepAliveTime", "3600000")
	putString(w, "{limiter}:value", "6", time.Hour)
	putScore(w, "{limiter}:permits", in(-time.Second), rateRecord(4))
	w.Server.HSet("mine", "rate", "7", "interval", "1000", "type", "1") // before 3.38
	const generation = locktest.OurC + ":5:3"
	put(w, "redlatch_barrier:{gate}", 9*time.Minute, "generation", generation, "parties", "3")
	put(w, "redlatch_barrier:{gate}:"+generation, 9*time.Minute, "arrived", "2", locktest.OurC+":9", "1", locktest.OurC+":8", "2", locktest.OurC+":7", "gone")
	putScore(w, "redlatch_barrier_alive:{gate}", in(25*time.Second), locktest.OurC)
	waiter := func(n string) admin.Waiter {
		return admin.Waiter{Owner: locktest.OurC + ":" + n, Client: locktest.OurC, Redlatch: true, Until: now.Add(25 * time.Second).Truncate(time.Millisecond)}
	}

	// What only looks like one.
	putString(w, "foreign", "5", 0)
	putScore(w, "{foreign}:timeout", in(time.Minute), "ann")
	putScore(w, "alone:timeout", in(time.Minute), live)
	putScore(w, "{alone}:timeout", in(time.Minute), live)
	putString(w, "text", "five", 0)
	w.Server.HSet("settings", "rate", "high", "interval", "1", "type", "0")
	w.Server.HSet("part", "rate", "5")
	w.Server.HSet("most", "interval", "1000", "type", "0", "keepAliveTime", "0")
	w.Server.HSet("more", "rate", "1", "interval", "1", "type", "0", "name", "Ann")
	w.Server.HSet("redlatch_barrier:{not}", "generation", "x")
	w.Server.HSet("redlatch_barrier:odd", "generation", "x", "parties", "1")

	return []admin.Info{
		{Name: "permits", Kind: redlatch.KindExpirable, TTL: -1, Free: 4, Permits: 6, Holders: []admin.Holder{
			{Owner: liveHex, Count: 1, TTL: 20 * time.Second}, {Owner: everHex, Count: 1, TTL: -1},
		}},
		{Name: "{tag}permits", Kind: redlatch.KindExpirable, TTL: time.Hour, Free: -1, Holders: []admin.Holder{{Owner: old, Count: 1, TTL: time.Minute}}},
		{
			Name: "limiter", Kind: redlatch.KindRateLimiter, TTL: time.Hour, Free: 6,
			Rate: ratelimit.Rate{Permits: 10, Interval: time.Minute, KeepAlive: time.Hour},
		},
		{
			Name: "mine", Kind: redlatch.KindRateLimiter, TTL: -1, Free: 7,
			Rate: ratelimit.Rate{Permits: 7, Interval: time.Second, PerClient: true},
		},
		{
			Name: "gate", Kind: redlatch.KindBarrier, TTL: 9 * time.Minute, Parties: 3, Generation: generation,
			Queue: []admin.Waiter{waiter("8"), waiter("9")},
		},
	}
}

// collected is a listing, by name.
func collected(w *locktest.World, list func(ctx context.Context, pattern string) func(func(admin.Info, error) bool), pattern string) map[string]admin.Info {
	w.Helper()
	all := map[string]admin.Info{}
	for info, err := range list(bg, pattern) {
		if err != nil {
			w.Fatal(err)
		}
		all[info.Name] = info
	}
	return all
}

// What each synchronizer has in Redis is read to the last field, alone and in a
// listing, and what other applications have there is left out.
func TestInfoOfSynchronizers(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		want := map[string]admin.Info{}
		for _, info := range putSynchronizers(w) {
			want[info.Name] = info
			if got, err := admin.New(c).Info(bg, info.Name); err != nil || !reflect.DeepEqual(got, info) {
				t.Errorf("%s: %v\n got %+v\nwant %+v", info.Name, err, got, info)
			}
		}
		put(w, "lock", time.Minute, locktest.JavaA+":42", "1")
		want["lock"] = admin.Info{Name: "lock", Kind: redlatch.KindLock, TTL: time.Minute, Holders: []admin.Holder{javaHolder(locktest.JavaA, 42, 1, time.Minute)}}
		objects := func(ctx context.Context, pattern string) func(func(admin.Info, error) bool) {
			return admin.New(c).Objects(ctx, pattern)
		}
		if got := collected(w, objects, ""); !reflect.DeepEqual(got, want) {
			t.Errorf("listed:\n got %+v\nwant %+v", got, want)
		}
		for pattern, names := range map[string][]string{
			"*permits": {"permits", "{tag}permits"}, "{tag}*": {"{tag}permits"}, "gate": {"gate"}, "g[a-b]te": {"gate"}, "lo*": {"lock"}, "nothing*": nil, "permits": {"permits"},
		} {
			got := collected(w, objects, pattern)
			for _, name := range names {
				if !reflect.DeepEqual(got[name], want[name]) {
					t.Errorf("%q: of %s %+v", pattern, name, got[name])
				}
			}
			if len(got) != len(names) {
				t.Errorf("%q lists %+v, want %q", pattern, got, names)
			}
		}
		locks := func(ctx context.Context, pattern string) func(func(admin.Info, error) bool) {
			return admin.New(c).Locks(ctx, pattern)
		}
		if got := collected(w, locks, ""); len(got) != 1 || got["lock"].Kind != redlatch.KindLock {
			t.Errorf("locks: %+v", got)
		}
		var wrong *driver.RunError
		for _, name := range []string{"text", "settings", "part", "most", "more"} {
			if info, err := admin.New(c).Info(bg, name); !errors.As(err, &wrong) || wrong.Code != "WRONGTYPE" {
				t.Errorf("%s: %+v, %v", name, info, err)
			}
		}
		for _, name := range []string{"limiter", "part"} {
			if info, err := admin.LockInfo(bg, c.Lock(name)); !errors.As(err, &wrong) || wrong.Code != "WRONGTYPE" {
				t.Errorf("%s as a lock: %+v, %v", name, info, err)
			}
		}
	})
}

// "x" and "{x}" have the same side keys, by which they are found.
func TestAListingLeavesOutTheTwinOfANameThatFits(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		raw, _ := permitID(7)
		for _, name := range []string{"{app:x}", "app:{y}", "{z}"} {
			putString(w, name, "1", 0)
			putScore(w, wire.Suffix(name, wire.PermitTimeout), time.Now().Add(time.Minute).UnixMilli(), raw)
		}
		put(w, "z", time.Minute, locktest.JavaA+":42", "1") // a lock
		put(w, "redlatch_barrier:{app:gate}", time.Minute, "generation", "g", "parties", "3")
		plain, prefixed := w.Client(redlatch.Config{}), w.Client(redlatch.Config{Prefix: "app:"})
		for _, tc := range []struct {
			c       *redlatch.Client
			pattern string
			want    []string
		}{
			{plain, "", []string{"app:gate", "app:{y}", "z", "{app:x}", "{z}"}},
			{plain, "app:*", []string{"app:gate", "app:{y}"}},
			{plain, "app:x", nil},
			{plain, "{app:*}", []string{"{app:gate}", "{app:x}"}},
			{plain, "?app:x?", []string{"{app:x}"}},
			{prefixed, "", []string{"gate", "{y}"}},
			{prefixed, "?", nil},
			{prefixed, "{y}", []string{"{y}"}},
		} {
			got := collected(w, func(ctx context.Context, pattern string) func(func(admin.Info, error) bool) {
				return admin.New(tc.c).Objects(ctx, pattern)
			}, tc.pattern)
			if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, tc.want) {
				t.Errorf("%q lists %q, want %q", tc.pattern, names, tc.want)
			}
		}
	})
}

// A number says what it counts only by what is beside it; the rest is a guess that
// is not made.
func TestInfoOfNumbers(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, other := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		putSynchronizers(w)
		putString(w, "number", "5", 0)
		putString(w, "negative", "-8", 0)
		putString(w, "lasting", "5", time.Hour)
		putString(w, "wanted", "0", 0)
		putString(w, "latch", "2", 0)
		for key, value := range map[string]string{ // of other objects, or none
			"redisson_lock_token:{x}": "5", "redlatch_session:{x}:" + locktest.OurC + ":rate": "7", "{x}:value": "5", "{x}:value:" + locktest.OurC: "5",
			"{x}:" + locktest.JavaA + ":1:rwlock_timeout:1": "1", "float": "1.5", "long": strings.Repeat("1", 50), "hex": "0x10",
		} {
			putString(w, key, value, 0)
		}
		ctx, cancel := context.WithCancel(bg)
		defer cancel()
		acquired := locktest.Later(func() error { return semaphore.New(other, "wanted", 0).Acquire(ctx, 1) })
		opened := locktest.Later(func() error { return latch.New(other, "latch").Wait(ctx) })
		time.Sleep(time.Second)
		synctest.Wait()

		want := map[string]admin.Info{}
		for name, info := range map[string]admin.Info{
			"number":   {Kind: redlatch.KindCounter, TTL: -1, Number: 5},
			"foreign":  {Kind: redlatch.KindCounter, TTL: -1, Number: 5},
			"negative": {Kind: redlatch.KindSemaphore, TTL: -1, Free: -8},
			"lasting":  {Kind: redlatch.KindSemaphore, TTL: time.Hour - time.Second, Free: 5},
			"wanted":   {Kind: redlatch.KindSemaphore, TTL: -1},
			"latch":    {Kind: redlatch.KindLatch, TTL: -1, CountDowns: 2},
		} {
			info.Name = name
			want[name] = info
			if got, err := admin.New(c).Info(bg, name); err != nil || !reflect.DeepEqual(got, info) {
				t.Errorf("%s: %v\n got %+v\nwant %+v", name, err, got, info)
			}
		}
		counters := func(ctx context.Context, pattern string) func(func(admin.Info, error) bool) {
			return admin.New(c).Counters(ctx, pattern)
		}
		if got := collected(w, counters, "*"); !reflect.DeepEqual(got, want) {
			t.Errorf("listed:\n got %+v\nwant %+v", got, want)
		}
		if got := collected(w, counters, "n*"); len(got) != 2 {
			t.Errorf("by a pattern: %+v", got)
		}
		cancel()
		w.WantErr(<-acquired, context.Canceled)
		w.WantErr(<-opened, context.Canceled)
	})
}

// What redlatch itself does is seen as it stands.
func TestInfoFollowsSynchronizers(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, other := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		info := func(name string) admin.Info {
			t.Helper()
			info, err := admin.New(c).Info(bg, name)
			if err != nil {
				t.Fatal(err)
			}
			return info
		}
		s := semaphore.NewExpirable(other, "s", 0)
		if _, err := s.TrySetPermits(bg, 2); err != nil {
			t.Fatal(err)
		}
		if got := info("s"); got.Kind != redlatch.KindCounter || got.Number != 2 || got.Held() {
			t.Errorf("none taken: %+v", got)
		}
		p, err := s.Acquire(bg, 1)
		if err != nil {
			t.Fatal(err)
		}
		if got := info("s"); got.Free != 1 || got.Permits != 2 || !got.Held() || got.Holders[0].Owner != p.ID() {
			t.Errorf("one taken: %+v, id %s", got, p.ID())
		}
		if err := p.Release(bg); err != nil {
			t.Fatal(err)
		}
		arrived := locktest.Later(func() error { _, err := barrier.New(other, "b", 2).Await(bg); return err })
		time.Sleep(time.Second)
		synctest.Wait()
		before := info("b")
		if before.Kind != redlatch.KindBarrier || before.Parties != 2 || len(before.Queue) != 1 || before.Queue[0].Client != other.ID() || !before.Queue[0].Until.After(time.Now()) {
			t.Errorf("one arrived: %+v", before)
		}
		if _, err := barrier.New(c, "b", 2).Await(bg); err != nil {
			t.Fatal(err)
		}
		if got := info("b"); got.Parties != 2 || got.Generation == before.Generation || got.Queue != nil {
			t.Errorf("gone on: %+v", got)
		}
		if err := <-arrived; err != nil {
			t.Fatal(err)
		}
		if got := info("none"); got.Kind != redlatch.KindLock || got.Held() || got.TTL != 0 {
			t.Errorf("nothing: %+v", got)
		}
	})
}

// A listing reads no hash or sorted set that is larger than any of ours.
func TestListingsLeaveLargeKeysAlone(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		fields := []string{"mode", "read"}
		for i := range 10_001 {
			fields = append(fields, locktest.JavaA+":"+strconv.Itoa(i), "1")
			putScore(w, "{permits}:timeout", time.Now().Add(time.Hour).UnixMilli(), strings.Repeat("p", 11)+strconv.Itoa(i+10_000))
		}
		put(w, "many", time.Hour, fields...)
		putString(w, "permits", "1", 0)
		for info, err := range admin.New(c).Objects(bg, "") {
			t.Errorf("listed: %s, %v", info.Name, err)
		}
		if info, err := admin.New(c).Info(bg, "permits"); err != nil || len(info.Holders) != 10_001 {
			t.Errorf("asked for by its name it has %d holders: %v", len(info.Holders), err)
		}
	})
}

// Real servers write scores, and count channels and time, as the embedded one
// does.
func TestInfoOfSynchronizersOnRealServers(t *testing.T) {
	locktest.OnRealServers(t, func(t *testing.T, s *testserver.Server) {
		c := locktest.ClientOf(t, drivers.Goredis.Open(t, drivers.Single(s.Addr())), redlatch.Config{})
		raw, hex := permitID(0xfe)
		dead, _ := permitID(0x80)
		ever, _ := permitID(0x02)
		s.MustDo("SET", "permits", "2")
		s.MustDo("ZADD", "{permits}:timeout", "922337203685477", ever, strconv.FormatInt(time.Now().Add(time.Hour).UnixMilli(), 10), raw, "1.5", dead)
		s.MustDo("HSET", "limiter", "rate", "5", "interval", "3600000", "type", "0", "keepAliveTime", "0")
		s.MustDo("SET", "{limiter}:value", "2")
		s.MustDo("ZADD", "{limiter}:permits", strconv.FormatInt(time.Now().UnixMilli(), 10), rateRecord(3))
		s.MustDo("SET", "latch", "3")
		s.MustDo("LPUSH", "list", "x")
		opened := locktest.Later(func() error { return latch.New(c, "latch").Wait(t.Context()) })
		arrived := locktest.Later(func() error { _, err := barrier.New(c, "gate", 2).Await(t.Context()); return err })
		for _, name := range []string{"latch", "gate"} { // until somebody waits for them
			for until := time.Now().Add(locktest.Generous); ; time.Sleep(10 * time.Millisecond) {
				info, err := admin.New(c).Info(bg, name)
				if err == nil && (info.Kind == redlatch.KindLatch || len(info.Queue) == 1) {
					break
				}
				if time.Now().After(until) {
					t.Fatalf("%+v, %v", info, err)
				}
			}
		}
		info, err := admin.New(c).Info(bg, "permits")
		if err != nil || info.Free != 3 || info.Permits != 5 || len(info.Holders) != 2 || info.Holders[0].Owner != hex || info.Holders[1].TTL != -1 ||
			info.Holders[0].TTL > time.Hour || info.Holders[0].TTL < 59*time.Minute {
			t.Errorf("%+v, %v", info, err)
		}
		if info, err = admin.New(c).Info(bg, "limiter"); err != nil || info.Free != 2 || info.Rate.Permits != 5 || info.TTL != -1 || info.Rate.Interval != time.Hour {
			t.Errorf("%+v, %v", info, err)
		}
		var wrong *driver.RunError
		if info, err = admin.New(c).Info(bg, "list"); !errors.As(err, &wrong) || wrong.Code != "WRONGTYPE" {
			t.Errorf("%+v, %v", info, err)
		}
		listed := map[string]redlatch.Kind{}
		for _, list := range []func(func(admin.Info, error) bool){admin.New(c).Objects(bg, "*"), admin.New(c).Counters(bg, "*")} {
			for info, err := range list {
				if err != nil {
					t.Fatal(err)
				}
				listed[info.Name] = info.Kind
			}
		}
		if want := map[string]redlatch.Kind{"permits": "expirable semaphore", "limiter": "rate limiter", "gate": "barrier", "latch": "latch"}; !reflect.DeepEqual(listed, want) {
			t.Errorf("listed %v, want %v", listed, want)
		}
		if _, err := barrier.New(c, "gate", 2).Await(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := latch.New(c, "latch").Delete(bg); err != nil {
			t.Error(err)
		}
		if err := errors.Join(<-opened, <-arrived); err != nil {
			t.Error(err)
		}
	})
}
