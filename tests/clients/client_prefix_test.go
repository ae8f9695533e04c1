package clients

import (
	"context"
	"errors"
	"iter"
	"maps"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/barrier"
	"github.com/redlatch/redlatch/election"
	"github.com/redlatch/redlatch/latch"
	"github.com/redlatch/redlatch/observe"
	"github.com/redlatch/redlatch/ratelimit"
	"github.com/redlatch/redlatch/semaphore"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// A program's name may begin as the prefix does.
const (
	prefix = "app:"
	mine   = "app:x"
	stored = prefix + mine
)

// ids are parts of keys and channels that are new each time.
var ids = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}(:\d+)?|:\d+$`)

// What has a prefix is what any other program, Redisson too, has by a name with
// that prefix in it: each key, and each channel, of each type.
func TestAPrefixIsAPlainPartOfEveryName(t *testing.T) {
	touched := func(x *tour) (keys, channels []string) {
		locktest.InFakeTime(t, func(w *locktest.World) {
			all, heard := map[string]bool{}, map[string]bool{}
			published := w.Eavesdrop()
			x.script = func(_ string, keys, _ []string) {
				for _, key := range keys {
					all[ids.ReplaceAllString(key, "ID")] = true
				}
			}
			runTour(w, x)
			for _, m := range published() {
				channel, _, _ := strings.Cut(m, " ")
				heard[ids.ReplaceAllString(channel, "ID")] = true
			}
			keys, channels = slices.Sorted(maps.Keys(all)), slices.Sorted(maps.Keys(heard))
		})
		return keys, channels
	}
	wantKeys, wantChannels := touched(&tour{prefix: prefix})
	keys, channels := touched(&tour{cfg: redlatch.Config{Prefix: prefix}})
	if !slices.Equal(keys, wantKeys) || len(keys) < 30 {
		t.Errorf("the keys are %q, want %q", keys, wantKeys)
	}
	if !slices.Equal(channels, wantChannels) || len(channels) < 8 {
		t.Errorf("the channels are %q, want %q", channels, wantChannels)
	}
	for _, key := range keys {
		if !strings.Contains(key, prefix) && !strings.HasPrefix(key, "redlatch_client:") {
			t.Errorf("key %s has no prefix", key)
		}
	}
}

// heard is what events have said of names.
type heard struct{ names chan string }

func (h *heard) tell(name string) { h.names <- name }

func (h *heard) hooks() observe.Hooks {
	return observe.Hooks{
		AcquireStart: func(ctx context.Context, e observe.AcquireStartEvent) context.Context {
			h.tell(e.Name)
			return ctx
		},
		AcquireEnd: func(_ context.Context, e observe.AcquireEndEvent) { h.tell(e.Name) },
		HoldEnd:    func(_ context.Context, e observe.HoldEndEvent) { h.tell(e.Name) },
		Lost:       func(e observe.LostEvent) { h.tell(e.Err.Name) },
		SlowWait:   func(e observe.SlowWaitEvent) { h.tell(e.Name) },
		Requeued:   func(e observe.RequeuedEvent) { h.tell(e.Name) },
		Dropped:    func(e observe.DroppedEvent) { h.tell(e.Name) },
	}
}

// want looks at all that has been heard.
func (h *heard) want(w *locktest.World, least int) {
	w.Helper()
	synctest.Wait()
	close(h.names)
	n := 0
	for name := range h.names {
		if n++; name != mine {
			w.Errorf("an event is about %q, want %q", name, mine)
		}
	}
	if n < least {
		w.Errorf("%d events, want %d at least", n, least)
	}
}

func wantName(w *locktest.World, what, got string) {
	w.Helper()
	if got != mine {
		w.Errorf("%s is about %q, want %q", what, got, mine)
	}
}

// wantText looks whether an error says the program's name, and not that in Redis.
func wantText(w *locktest.World, err error, is error) {
	w.Helper()
	if err == nil || !errors.Is(err, is) || !strings.Contains(err.Error(), `"`+mine+`"`) {
		w.Errorf("the error is %v; want %v, about %q", err, is, mine)
	}
	if busy, ok := errors.AsType[*redlatch.BusyError](err); ok {
		wantName(w, "a BusyError", busy.Name)
	}
}

// Of each type of lock, a program hears the name that it has said, wherever that
// turns up.
func TestAProgramSaysAndHearsNamesWithoutThePrefix(t *testing.T) {
	for kind, of := range locktest.MemberKinds {
		t.Run(kind, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				h := &heard{make(chan string, 1000)}
				a, b, plain := w.Client(redlatch.Config{Prefix: prefix, SlowWait: time.Second}, h.hooks()), w.Client(redlatch.Config{Prefix: prefix}), w.Client(redlatch.Config{})
				l := of(a, mine)
				wantName(w, "the lock", l.Name())
				hold := w.Acquire(bg, l)
				wantName(w, "the hold", hold.Name())
				other := of(b, mine)
				if kind == "read" {
					other = b.ReadWriteLock(mine).Write()
				}
				_, err := other.TryAcquire(bg, 0)
				wantText(w, err, redlatch.ErrBusy)
				_, err = other.TryAcquire(bg, 2*time.Second)
				wantText(w, err, redlatch.ErrBusy)
				if kind != "read" && kind != "non-re-entry" {
					_, err = l.TryAcquire(bg, 2*time.Second) // a slow wait
					wantText(w, err, redlatch.ErrBusy)
				}
				info, err := admin.LockInfo(bg, l)
				w.OK(err)
				wantName(w, "Info", info.Name)
				if !info.Held() || info.Holders[0].Since.IsZero() {
					w.Errorf("the client does not know its own hold: %+v", info)
				}
				if info, err = admin.New(plain).Info(bg, stored); err != nil || info.Name != stored || !info.Held() {
					w.Errorf("without the prefix it is %+v, %v", info, err)
				}
				w.Server.Del(stored)
				<-hold.Context().Done()
				wantText(w, hold.Err(), redlatch.ErrLost)
				if ok, err := admin.ForceRelease(bg, other); ok || err != nil {
					w.Errorf("released by force: %v, %v", ok, err)
				}
				synctest.Wait() // the loss is told after the context has ended
				w.OK(a.Close())
				h.want(w, 4)
			})
		})
	}
}

// Who lists what there is finds what has the prefix, and hears it by the program's
// names.
func TestListsKeepToThePrefix(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		a, b, plain := w.Client(redlatch.Config{Prefix: prefix}), w.Client(redlatch.Config{Prefix: prefix}), w.Client(redlatch.Config{})
		holds := []*redlatch.Hold{w.Acquire(bg, a.Lock(mine)), w.Acquire(bg, plain.Lock("other:1"))}
		permit := w.Permit(w.Permits(a, 1)) // by the name locktest.Pool
		w.SetPermits(semaphore.New(a, "count", 0), 3)
		w.SetRate(ratelimit.New(a, "rate", ratelimit.Rate{}), ratelimit.Rate{Permits: 1, Interval: time.Hour})
		w.SetRate(ratelimit.New(plain, "other:rate", ratelimit.Rate{}), ratelimit.Rate{Permits: 1, Interval: time.Hour})
		waiter := locktest.Later(func() error { _, err := b.Lock(mine).TryAcquire(bg, time.Minute); return err })
		time.Sleep(10 * time.Second)

		names := func(all iter.Seq2[admin.Info, error]) []string {
			found := map[string]bool{}
			for info, err := range all {
				w.OK(err)
				found[info.Name] = true
			}
			return slices.Sorted(maps.Keys(found))
		}
		for _, tc := range []struct {
			what      string
			got, want []string
		}{
			{"locks", names(admin.New(a).Locks(bg, "")), []string{mine}},
			{"locks by a pattern", names(admin.New(a).Locks(bg, "app:*")), []string{mine}},
			{"locks that are not there", names(admin.New(a).Locks(bg, "other:*")), nil},
			{"objects", names(admin.New(a).Objects(bg, "*")), []string{mine, locktest.Pool, "rate"}},
			{"numbers", names(admin.New(a).Counters(bg, "c*")), []string{"count"}},
			{"all locks", names(admin.New(plain).Locks(bg, "")), []string{stored, "other:1"}},
		} {
			if !slices.Equal(tc.got, tc.want) {
				w.Errorf("%s: %q, want %q", tc.what, tc.got, tc.want)
			}
		}

		look := func(c *redlatch.Client, q admin.Question) (held, waiting, objects []string) {
			p, err := admin.New(c).Participants(bg, q)
			w.OK(err)
			for _, x := range p.Clients {
				for _, claim := range x.Held {
					held = append(held, claim.Name)
				}
				for _, claim := range x.Waiting {
					waiting = append(waiting, claim.Name)
				}
			}
			for _, info := range p.Objects {
				objects = append(objects, info.Name)
			}
			slices.Sort(held)
			return held, waiting, objects
		}
		for q, want := range map[*admin.Question][]string{
			{}: {mine, locktest.Pool}, {Pattern: "app:?"}: {mine}, {Names: []string{mine}}: {mine}, {Pattern: "other:*"}: nil,
		} {
			held, waiting, objects := look(a, *q)
			if !slices.Equal(held, want) || slices.Contains(want, mine) && (!slices.Equal(waiting, []string{mine}) || !slices.Contains(objects, mine)) {
				w.Errorf("%+v: held %q, waited for %q, objects %q; want %q", q, held, waiting, objects, want)
			}
		}
		if held, waiting, _ := look(plain, admin.Question{}); !slices.Equal(held, []string{stored, prefix + locktest.Pool, "other:1"}) || !slices.Equal(waiting, []string{stored}) {
			w.Errorf("without the prefix %q are held and %q is waited for", held, waiting)
		}
		if ok, err := admin.ForceRelease(bg, plain.Lock(stored)); !ok || err != nil {
			w.Errorf("released by force: %v, %v", ok, err)
		}
		w.OK(<-waiter)
		runtime.KeepAlive(holds)
		runtime.KeepAlive(permit)
	})
}

// Two callers that wait for each other are shown by the names that their program
// says.
func TestCircularWaitsAreToldWithoutThePrefix(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		a, b := w.Client(redlatch.Config{Prefix: prefix}), w.Client(redlatch.Config{Prefix: prefix})
		x, y := w.Acquire(bg, a.Lock("x")), w.Acquire(bg, b.Lock("y"))
		var all []<-chan error
		for c, of := range map[*redlatch.Client]struct {
			h    *redlatch.Hold
			name string
		}{a: {x, "y"}, b: {y, "x"}} {
			waits := locktest.Later(func() error {
				_, err := c.Lock(of.name).TryAcquire(of.h.Context(), time.Minute)
				return err
			})
			all = append(all, waits)
		}
		time.Sleep(20 * time.Second)
		p, err := admin.New(a).Participants(bg, admin.Question{})
		w.OK(err)
		var names []string
		for _, circle := range p.CircularWaits() {
			for _, wait := range circle {
				names = append(names, wait.Name)
			}
		}
		slices.Sort(names)
		if !slices.Equal(names, []string{"x", "y"}) {
			w.Errorf("the circle is about %q", names)
		}
		for _, waits := range all {
			w.WantErr(<-waits, redlatch.ErrBusy)
		}
		w.Release(x)
		w.Release(y)
	})
}

// The synchronizers, several locks at once and elections say names as the locks
// do.
func TestSynchronizersSayNamesWithoutThePrefix(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, plain := w.Client(redlatch.Config{Prefix: prefix}), w.Client(redlatch.Config{})
		soon := func() context.Context {
			ctx, cancel := context.WithTimeout(bg, time.Second)
			w.Cleanup(cancel)
			return ctx
		}

		s := semaphore.New(c, mine, 0)
		wantName(w, "the semaphore", s.Name())
		wantText(w, s.TryAcquire(bg, 1, time.Second), redlatch.ErrUninitialized)
		w.SetPermits(s, 0)
		wantText(w, s.TryAcquire(bg, 1, time.Second), redlatch.ErrBusy)
		if deleted, err := s.Delete(bg); !deleted || err != nil {
			w.Errorf("Delete: %v, %v", deleted, err)
		}

		e := semaphore.NewExpirable(c, mine, 0)
		_, err := e.Acquire(bg, 1)
		wantText(w, err, redlatch.ErrUninitialized)
		_, err = e.TrySetPermits(bg, 1)
		w.OK(err)
		p := w.Permit(e)
		wantName(w, "the permit", p.Name())
		_, err = e.TryAcquire(bg, 1, time.Second)
		wantText(w, err, redlatch.ErrBusy)
		w.OK(p.Release(bg))
		wantText(w, e.Release(bg, p.ID()), redlatch.ErrNotHeld)
		p = w.Permit(e)
		w.Server.Del("{" + stored + "}:timeout")
		<-p.Context().Done()
		wantText(w, p.Err(), redlatch.ErrLost)

		l := latch.New(c, "latch:"+mine)
		_, err = l.TrySetCount(bg, 1)
		w.OK(err)
		if err := l.Wait(soon()); err == nil || !strings.Contains(err.Error(), `"latch:app:x"`) || strings.Contains(err.Error(), "app:latch") {
			w.Errorf("the latch: %v", err)
		}
		if n, err := latch.New(plain, "app:latch:"+mine).Count(bg); n != 1 || err != nil {
			w.Errorf("without the prefix the count is %d, %v", n, err)
		}

		w.Server.Del(stored)
		r := ratelimit.New(c, mine, ratelimit.Rate{})
		wantText(w, r.Acquire(bg, 1), redlatch.ErrUninitialized)
		w.SetRate(r, ratelimit.Rate{Permits: 1, Interval: time.Hour})
		w.OK(r.Acquire(bg, 1))
		err = r.TryAcquire(bg, 1, 0)
		wantText(w, err, redlatch.ErrBusy)
		if err := r.Acquire(bg, 2); err == nil || !strings.Contains(err.Error(), `"app:x"`) {
			w.Errorf("the limiter: %v", err)
		}
		w.Server.FlushAll()

		b := barrier.New(c, mine, 2)
		wantName(w, "the barrier", b.Name())
		_, err = b.Await(soon())
		wantText(w, err, redlatch.ErrBusy)

		m := redlatch.MultiLock(c.Lock(mine), c.FairLock("y"))
		all := w.Acquire(bg, m)
		_, err = c.Lock(mine).TryAcquire(bg, 0)
		wantText(w, err, redlatch.ErrBusy)
		_, err = redlatch.MultiLock(c.Lock("a"), c.Lock(mine)).TryAcquire(bg, 0)
		wantText(w, err, redlatch.ErrBusy)
		wantName(w, "a hold of several", all.Members()[0].Name())
		w.Release(all)

		h := w.Acquire(bg, c.ReadWriteLock(mine).Read())
		_, err = c.ReadWriteLock(mine).Write().Acquire(h.Context())
		wantText(w, err, redlatch.ErrReentry)
		w.Release(h)

		candidate := election.New(c, mine)
		wantName(w, "the election", candidate.Name())
		led := errors.New("led")
		w.WantErr(candidate.Run(bg, func(ctx context.Context, _ int64) error {
			leader, err := election.New(plain, stored).Leader(ctx)
			if err != nil || leader.Client != c.ID() {
				w.Errorf("without the prefix the leader is %+v, %v", leader, err)
			}
			for leader, err := range candidate.Observe(ctx) {
				if err != nil || leader.Client != c.ID() {
					w.Errorf("the leader is %+v, %v", leader, err)
				}
				break
			}
			return led
		}), led)
	})
}

func TestAPrefixIsTheBeginningOfNames(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		for _, bad := range []string{"{", "}", "a{b", "a}", "{}", "}{", "a{}b:", strings.Repeat("x", 101)} {
			if _, err := redlatch.New(w.Driver(), redlatch.Config{Prefix: bad}); err == nil || !strings.Contains(err.Error(), "Config.Prefix") {
				w.Errorf("prefix %q: %v", bad, err)
			}
		}
		long := w.Client(redlatch.Config{Prefix: strings.Repeat("*", 100)})
		if _, err := admin.New(long).Participants(bg, admin.Question{}); err != nil {
			w.Error(err)
		}
		c := w.Client(redlatch.Config{Prefix: "{billing}:*[a]:"})
		x, y := w.Acquire(bg, c.Lock("x")), w.Acquire(bg, w.Client(redlatch.Config{}).Lock("{billing}:a:y"))
		n := 0
		for info, err := range admin.New(c).Locks(bg, "") {
			w.OK(err)
			if n++; info.Name != "x" {
				w.Errorf("%q is listed", info.Name)
			}
		}
		if n != 1 {
			w.Errorf("%d locks are listed", n)
		}
		w.Release(x)
		w.Release(y)
		if _, err := c.Lock("").TryAcquire(bg, 0); err == nil || !strings.Contains(err.Error(), "must not be empty") {
			w.Errorf("no name: %v", err)
		}
		if _, err := semaphore.New(c, "", 0).Available(bg); err == nil {
			w.Error("a semaphore without a name")
		}
	})
}
