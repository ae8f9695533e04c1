package clients

import (
	"errors"
	"iter"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/internal/wire"
	"github.com/redlatch/redlatch/redisson"
	"github.com/redlatch/redlatch/tests/internal/drivers"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// put makes a hash as Redisson leaves it; pairs are fields and values.
func put(w *locktest.World, key string, ttl time.Duration, pairs ...string) {
	w.Server.HSet(key, pairs...)
	w.Server.SetTTL(key, ttl)
}

// mark makes a key of a read hold.
func mark(w *locktest.World, key string, ttl time.Duration) {
	w.Helper()
	if err := w.Server.Set(key, "1"); err != nil {
		w.Fatal(err)
	}
	w.Server.SetTTL(key, ttl)
}

func enqueue(w *locktest.World, name, owner string, until time.Time) {
	w.Helper()
	if _, err := w.Server.RPush("redisson_lock_queue:{"+name+"}", owner); err != nil {
		w.Fatal(err)
	}
	if until.IsZero() {
		return
	}
	if _, err := w.Server.ZAdd("redisson_lock_timeout:{"+name+"}", float64(until.UnixMilli()), owner); err != nil {
		w.Fatal(err)
	}
}

func javaHolder(uuid string, thread, count int, ttl time.Duration) admin.Holder {
	return admin.Holder{Owner: uuid + ":" + strconv.Itoa(thread), Client: uuid, Count: count, TTL: ttl}
}

// What Redisson stores of each type is told apart, and read to the last field.
func TestInfoGuessesTheKind(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		now := time.Now()
		until := now.Add(6 * time.Minute).Truncate(time.Millisecond)

		put(w, "plain", time.Minute, locktest.JavaA+":42", "2")
		put(w, "fenced", time.Minute, locktest.JavaA+":42", "1")
		if err := w.Server.Set("redisson_lock_token:{fenced}", "17"); err != nil {
			t.Fatal(err)
		}
		put(w, "fair", time.Minute, locktest.JavaA+":42", "1")
		enqueue(w, "fair", locktest.JavaB+":7", until)
		enqueue(w, "fair", locktest.OurC+":9", time.Time{})
		put(w, "rw", time.Minute, "mode", "write", locktest.JavaA+":42:write", "1", locktest.JavaA+":42", "2")
		mark(w, "{rw}:"+locktest.JavaA+":42:rwlock_timeout:1", 30*time.Second)
		mark(w, "{rw}:"+locktest.JavaA+":42:rwlock_timeout:2", 20*time.Second)
		put(w, "{s}:rw", time.Minute, "mode", "read", locktest.JavaA+":42", "1", locktest.OurC+":3", "1", locktest.JavaB+":1", "1")
		mark(w, "{s}:rw:"+locktest.JavaA+":42:rwlock_timeout:1", 10*time.Second)
		mark(w, "{s}:rw:"+locktest.OurC+":3:rwlock_timeout:1", 50*time.Second)
		const x, y = "Bt/D4wylKYCgzX0jVwjowg", "798uvSmTyISBDNXkBRQBxg"
		ms := func(d time.Duration) string { return strconv.FormatInt(now.Add(d).UnixMilli(), 10) }
		put(w, "group", time.Minute,
			x, locktest.JavaA+":42", x+":"+locktest.JavaA+":42:expire_time", ms(30*time.Second), x+":"+locktest.JavaA+":42:lock_count", "1",
			y, locktest.JavaB+":1", y+":"+locktest.JavaB+":1:expire_time", ms(time.Minute), y+":"+locktest.JavaB+":1:lock_count", "2",
			"vwOR5fJTI35BKAC66TjxhQ", locktest.JavaB+":1", "vwOR5fJTI35BKAC66TjxhQ:"+locktest.JavaB+":1:expire_time", ms(-1), "vwOR5fJTI35BKAC66TjxhQ:"+locktest.JavaB+":1:lock_count", "1")

		mode := func(h admin.Holder, mode string) admin.Holder { h.Mode = mode; return h }
		value := func(h admin.Holder, value string) admin.Holder { h.Value = value; return h }
		ours := admin.Holder{Owner: locktest.OurC + ":3", Client: locktest.OurC, Redlatch: true, Count: 1, TTL: 50 * time.Second, Mode: "read"}
		for _, want := range []admin.Info{
			{Name: "plain", Kind: redlatch.KindLock, TTL: time.Minute, Holders: []admin.Holder{javaHolder(locktest.JavaA, 42, 2, time.Minute)}},
			{Name: "fenced", Kind: redlatch.KindFenced, TTL: time.Minute, Token: 17, Holders: []admin.Holder{javaHolder(locktest.JavaA, 42, 1, time.Minute)}},
			{
				Name: "fair", Kind: redlatch.KindFair, TTL: time.Minute, Holders: []admin.Holder{javaHolder(locktest.JavaA, 42, 1, time.Minute)},
				Queue: []admin.Waiter{{Owner: locktest.JavaB + ":7", Client: locktest.JavaB, Until: until}, {Owner: locktest.OurC + ":9", Client: locktest.OurC, Redlatch: true}},
			},
			{Name: "rw", Kind: redlatch.KindReadWrite, TTL: time.Minute, Holders: []admin.Holder{
				mode(javaHolder(locktest.JavaA, 42, 1, time.Minute), "write"), mode(javaHolder(locktest.JavaA, 42, 2, 30*time.Second), "read"),
			}},
			{Name: "{s}:rw", Kind: redlatch.KindReadWrite, TTL: time.Minute, Holders: []admin.Holder{
				mode(javaHolder(locktest.JavaA, 42, 1, 10*time.Second), "read"), ours, mode(javaHolder(locktest.JavaB, 1, 1, 0), "read"), // the last without its key
			}},
			{Name: "group", Kind: redlatch.KindGroup, TTL: time.Minute, Holders: []admin.Holder{
				value(javaHolder(locktest.JavaB, 1, 2, time.Minute), y), value(javaHolder(locktest.JavaA, 42, 1, 30*time.Second), x),
			}},
			{Name: "free", Kind: redlatch.KindLock},
		} {
			got, err := admin.New(c).Info(bg, want.Name)
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %v\n got %+v\nwant %+v", want.Name, err, got, want)
			}
		}
		listed := map[string]redlatch.Kind{}
		for info, err := range admin.New(c).Locks(bg, "") {
			if err != nil {
				t.Fatal(err)
			}
			listed[info.Name] = info.Kind
		}
		if want := map[string]redlatch.Kind{
			"plain": "lock", "fenced": "fenced lock", "fair": "fair lock", "rw": "read-write lock", "{s}:rw": "read-write lock", "group": "group lock",
		}; !reflect.DeepEqual(listed, want) {
			t.Errorf("listed %v, want %v", listed, want)
		}
	})
}

// A lock is read as what it was asked as, and not as what it may look like.
func TestInfoReadsTheKindThatIsAsked(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		put(w, "a", time.Minute, locktest.JavaA+":42", "1")
		enqueue(w, "a", locktest.JavaB+":7", time.Now().Add(time.Minute))
		if err := w.Server.Set("redisson_lock_token:{a}", "3"); err != nil {
			t.Fatal(err)
		}
		if info, err := admin.LockInfo(bg, c.Lock("a")); err != nil || info.Kind != redlatch.KindLock || info.Queue != nil {
			t.Errorf("a plain lock: %+v, %v", info, err)
		}
		if info, err := admin.LockInfo(bg, c.Lock("a", redlatch.Fenced())); err != nil || info.Kind != redlatch.KindFenced || info.Token != 3 {
			t.Errorf("a fenced lock: %+v, %v", info, err)
		}
		put(w, "rw", time.Minute, "mode", "write", locktest.JavaA+":42:write", "1")
		var wrong *driver.RunError
		if info, err := admin.LockInfo(bg, c.Lock("rw")); !errors.As(err, &wrong) || wrong.Code != "WRONGTYPE" {
			t.Errorf("a read-write lock as a plain one: %+v, %v", info, err)
		}
	})
}

// What is not a lock fails as such, and spoils no listing.
func TestInfoOfWhatIsNoLock(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		put(w, "hash", time.Minute, "name", "Ada")
		put(w, "modal", time.Minute, "mode", "read", "name", "Ada")
		put(w, "half", time.Minute, "x", locktest.JavaA+":1", "x:"+locktest.JavaA+":1:expire_time", "soon")
		put(w, "alone", time.Minute, "mode", "read")
		if err := w.Server.Set("text", "x"); err != nil {
			t.Fatal(err)
		}
		put(w, "token", time.Minute, locktest.JavaA+":1", "1")
		if err := w.Server.Set("redisson_lock_token:{token}", "many"); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"hash", "modal", "half", "text", "token"} {
			var wrong *driver.RunError
			if info, err := admin.New(c).Info(bg, name); !errors.As(err, &wrong) || wrong.Code != "WRONGTYPE" || wrong.Outcome != driver.Refused {
				t.Errorf("%s: %+v, %v", name, info, err)
			}
		}
		for info, err := range admin.New(c).Locks(bg, "") {
			t.Errorf("listed: %+v, %v", info, err)
		}
		if _, err := admin.New(c).Info(bg, "a}"); err == nil {
			t.Error("a bad name was accepted")
		}
	})
}

// Another program's hash may have the fields of a lock but for its owner: the name
// of that is none. To release it by force was to delete it.
func TestForceReleaseDeletesNoOtherProgramsHash(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		expiry := strconv.FormatInt(time.Now().Add(time.Hour).UnixMilli(), 10)
		value := wire.GroupField("seat")
		w.Server.HSet("plain", "visits", "7")
		put(w, "fair", time.Minute, "visits", "7")
		put(w, "read", time.Minute, "mode", "read", "visits", "7")
		put(w, "written", time.Minute, "mode", "write", "visits:write", "7")
		put(w, "group", time.Minute, value, "visits", value+":visits:expire_time", expiry, value+":visits:lock_count", "1")
		for name, l := range map[string]*redlatch.Lock{
			"plain": c.Lock("plain"), "fair": c.FairLock("fair"), "read": c.ReadWriteLock("read").Read(), "written": c.ReadWriteLock("written").Write(),
			"group": redisson.GroupLock(c, "group", []string{"seat"}),
		} {
			was := w.Server.Dump()
			released, err := admin.ForceRelease(bg, l)
			var wrong *driver.RunError
			if released || !errors.As(err, &wrong) || wrong.Code != "WRONGTYPE" || w.Server.Dump() != was {
				t.Errorf("%s: %v, %v", name, released, err)
			}
			if info, err := admin.New(c).Info(bg, name); err == nil {
				t.Errorf("%s: %+v", name, info)
			}
		}
	})
}

// A key without a TTL keeps a lock for ever, whatever other keys do. Such a lock
// was said to last for no time.
func TestInfoOfALockThatNeverEnds(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		w.Server.HSet("plain", locktest.JavaOwner, "1")
		w.Server.HSet("written", "mode", "write", locktest.JavaOwner+":write", "1")
		put(w, "read", time.Minute, "mode", "read", locktest.JavaOwner, "2", locktest.OurC+":3", "1")
		w.OK(w.Server.Set("{read}:"+locktest.JavaOwner+":rwlock_timeout:1", "1"))
		mark(w, "{read}:"+locktest.JavaOwner+":rwlock_timeout:2", time.Second)
		mark(w, "{read}:"+locktest.OurC+":3:rwlock_timeout:1", time.Second)
		for name, l := range map[string]*redlatch.Lock{
			"plain": c.Lock("plain"), "written": c.ReadWriteLock("written").Write(), "read": c.ReadWriteLock("read").Read(),
		} {
			info, err := admin.LockInfo(bg, l)
			if err != nil || info.TTL != -1 || !slices.ContainsFunc(info.Holders, func(h admin.Holder) bool { return h.TTL == -1 }) {
				t.Errorf("%s: %+v, %v", name, info, err)
			}
		}
	})
}

// Of a lock that somebody has left without a holder it is said how long it is in
// the way.
func TestInfoOfALockWithoutAHolderHasItsTTL(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		put(w, "rw", time.Minute, "mode", "write")
		for what, l := range map[string]*redlatch.Lock{"read": c.ReadWriteLock("rw").Read(), "write": c.ReadWriteLock("rw").Write()} {
			if info, err := admin.LockInfo(bg, l); err != nil || info.Held() || info.TTL != time.Minute {
				t.Errorf("%s: %+v, %v", what, info, err)
			}
		}
	})
}

// Hundreds of read holds are more than one request should ask about.
func TestInfoOfManyReadHolds(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		put(w, "rw", time.Minute, "mode", "read", locktest.JavaA+":1", "1200")
		mark(w, "{rw}:"+locktest.JavaA+":1:rwlock_timeout:1100", 40*time.Second)
		if info, err := admin.New(c).Info(bg, "rw"); err != nil || len(info.Holders) != 1 || info.Holders[0].TTL != 40*time.Second {
			t.Errorf("%+v, %v", info, err)
		}
	})
}

// Real servers write scores and count the time as the embedded one does.
func TestInfoOfRealServers(t *testing.T) {
	locktest.OnRealServers(t, func(t *testing.T, s *testserver.Server) {
		c := locktest.ClientOf(t, drivers.Goredis.Open(t, drivers.Single(s.Addr())), redlatch.Config{})
		until := time.Now().Add(time.Hour).UnixMilli()
		ms := strconv.FormatInt(until, 10)
		s.MustDo("HSET", "fair", locktest.JavaA+":1", "1")
		s.MustDo("PEXPIRE", "fair", "3600000")
		s.MustDo("RPUSH", "redisson_lock_queue:{fair}", locktest.JavaB+":1", locktest.JavaB+":2")
		s.MustDo("ZADD", "redisson_lock_timeout:{fair}", ms, locktest.JavaB+":1", "12.5", locktest.JavaB+":2")
		s.MustDo("HSET", "group", "x", locktest.JavaA+":1", "x:"+locktest.JavaA+":1:expire_time", ms, "x:"+locktest.JavaA+":1:lock_count", "1")
		s.MustDo("PEXPIRE", "group", "3600000")
		info, err := admin.New(c).Info(bg, "fair")
		if err != nil || len(info.Queue) != 2 || info.Queue[0].Until.UnixMilli() != until || info.Queue[1].Until.UnixMilli() != 12 {
			t.Errorf("%+v, %v", info, err)
		}
		info, err = admin.New(c).Info(bg, "group")
		if err != nil || len(info.Holders) != 1 || info.Holders[0].TTL > time.Hour || info.Holders[0].TTL < 59*time.Minute {
			t.Errorf("%+v, %v", info, err)
		}
		n := 0
		for _, err := range admin.New(c).Locks(bg, "*") {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		if n != 2 {
			t.Errorf("%d locks listed", n)
		}
	})
}

// A user that may not run scripts sees nothing, and must not take that for there
// being nothing. One that may not read some keys sees the others.
func TestAListOfWhatNobodyMayReadIsNoEmptyList(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		for _, name := range []string{"mine", "secret", "secret too"} {
			put(w, name, time.Minute, locktest.OurC+":1", "1")
		}
		refused := "secret"
		c := w.Tapped(redlatch.Config{}, &locktest.Tap{Keyed: func(_ string, keys, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if strings.HasPrefix(keys[0], refused) {
				return driver.Reply{}, driver.ServerError("NOPERM", errors.New("NOPERM no permission"))
			}
			return next()
		}})
		list := func() (names []string, last error) {
			for info, err := range admin.New(c).Locks(bg, "") {
				if last = err; err == nil {
					names = append(names, info.Name)
				}
			}
			return names, last
		}
		if names, err := list(); err != nil || !slices.Equal(names, []string{"mine"}) {
			t.Errorf("of what may be read in part: %q, %v", names, err)
		}
		refused = ""
		if names, err := list(); driver.Failure(err).Code != "NOPERM" || names != nil {
			t.Errorf("of what must not be read: %q, %v", names, err)
		}
	})
}

// For some seconds a forced release leaves the owner whom it has asked in a hash
// of its own.
func TestWhoIsAskedToLetGoHoldsNoOtherLock(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		put(w, "redlatch_revoke:{x}", 5*time.Second, locktest.OurC+":1", "1")
		put(w, "redlatch_demo", 5*time.Second, locktest.OurC+":1", "1") // as somebody may call a lock
		for what, list := range map[string]iter.Seq2[admin.Info, error]{"locks": admin.New(c).Locks(bg, ""), "objects": admin.New(c).Objects(bg, "")} {
			var names []string
			for info, err := range list {
				w.OK(err)
				names = append(names, info.Name)
			}
			if !slices.Equal(names, []string{"redlatch_demo"}) {
				t.Errorf("%s: %q", what, names)
			}
		}
	})
}
