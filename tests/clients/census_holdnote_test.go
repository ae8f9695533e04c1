package clients

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/wire"
	"github.com/redlatch/redlatch/semaphore"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// Whoever waited in vain had to ask an operator what the holder was doing. A
// caller that does not wait asks nothing, nor does one that spins.
func TestAWaitThatEndsInVainHearsWhatTheHoldIsFor(t *testing.T) {
	for kind, of := range locktest.TypesOfLock {
		t.Run(kind, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				var asked, told locktest.Counter
				c := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: asked.Hook})
				holds := of
				if kind == "read" { // readers do not refuse one another
					holds = locktest.TypesOfLock["write"]
				}
				h := w.Acquire(bg, holds(w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: told.Hook}), "orders"))
				w.OK(h.SetNote("row 4,000 of 9,000"))
				time.Sleep(3 * time.Second)
				if e := refusal(bg, t, of(c, "orders"), 0); e.Note != "" || e.For != 0 || e.Renewed {
					t.Errorf("of a try: %+v", e)
				}
				start := time.Now()
				e := refusal(bg, t, of(c, "orders"), time.Second)
				if d := time.Since(start); d != time.Second {
					t.Errorf("a wait of a second lasted %v", d)
				}
				if kind == "spin" {
					if e.Note != "" || asked.Of("client.tell") != 0 {
						t.Errorf("%d questions: %+v", asked.Of("client.tell"), e)
					}
					w.Release(h)
					return
				}
				if e.Note != "row 4,000 of 9,000" || !e.Renewed || e.For < 3900*time.Millisecond || e.For > 4*time.Second || !strings.Contains(e.Error(), ` for 4s (renewed while it lives): "row 4,000 of 9,000"`) {
					t.Errorf("%v: %+v", e, e)
				}
				w.OK(h.SetNote("row 5,000 of 9,000"))
				time.Sleep(29 * time.Second)
				if e := refusal(bg, t, of(c, "orders"), 0); e.Note != "row 4,000 of 9,000" || e.For < 30*time.Second {
					t.Errorf("of a try after that: %+v", e)
				}
				time.Sleep(2 * time.Second)
				if e := refusal(bg, t, of(c, "orders"), 0); e.Note != "" || e.For != 0 || e.Renewed {
					t.Errorf("of a try long after that: %+v", e)
				}
				ctx, cancel := context.WithTimeout(bg, 300*time.Millisecond)
				defer cancel()
				if _, err := of(c, "orders").Acquire(ctx); !errors.As(err, &e) || e.Note != "row 5,000 of 9,000" {
					t.Errorf("of a wait with a deadline: %v", err)
				}
				if a, b := asked.Of("client.tell"), told.Of("client.tell"); a != 2 || b != 2 {
					t.Errorf("%d questions and %d answers for two waits", a, b)
				}
				w.Release(h)
				next := w.Acquire(bg, holds(w.Client(redlatch.Config{}), "orders"))
				if e := refusal(bg, t, of(c, "orders"), 0); e.Note != "" || e.For != 0 {
					t.Errorf("of the next holder: %+v", e)
				}
				w.Release(next)
			})
		})
	}
}

// The questions of a crowd would have cost more than what they wait for.
func TestACrowdThatGivesUpAsksTheHolderOnce(t *testing.T) {
	for _, kind := range []string{"lock", "fair", "read", "write"} {
		of := locktest.TypesOfLock[kind]
		t.Run(kind, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				var asked locktest.Counter
				c := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: asked.Hook})
				h := w.Acquire(bg, locktest.TypesOfLock[map[bool]string{true: "write", false: kind}[kind == "read"]](w.Client(redlatch.Config{}), "orders"))
				w.OK(h.SetNote("nightly"))
				n := 1000
				if kind == "fair" { // each has a place of its own in the queue
					n = 50
				}
				var each []<-chan *redlatch.BusyError
				for range n {
					each = append(each, locktest.Later(func() *redlatch.BusyError { return refusal(bg, t, of(c, "orders"), 3*time.Second) }))
				}
				for _, e := range each {
					if e := <-e; e.Note != "nightly" || e.For == 0 {
						t.Fatalf("%+v", e)
					}
				}
				if n := asked.Of("client.tell"); n != 1 {
					t.Errorf("%d questions", n)
				}
				w.Release(h)
			})
		})
	}
}

// A wait without an end needs no answer, and neither does a lock that passes from
// one to the next all the time.
func TestNobodyIsAskedForAWaitThatSucceeds(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var asked locktest.Counter
		clients := []*redlatch.Client{w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: asked.Hook}), w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: asked.Hook})}
		crowd := func(acquire func(l *redlatch.Lock) (*redlatch.Hold, error)) {
			var all sync.WaitGroup
			for i := range 8 {
				all.Go(func() {
					for range 100 {
						h, err := acquire(clients[i%2].Lock("orders"))
						if err != nil {
							t.Error(err)
							return
						}
						time.Sleep(5 * time.Millisecond)
						w.Release(h)
					}
				})
			}
			all.Wait()
		}
		crowd(func(l *redlatch.Lock) (*redlatch.Hold, error) { return l.Acquire(bg) })
		if n := asked.Of("client.tell"); n != 0 {
			t.Errorf("%d questions of those who wait without end", n)
		}
		start := time.Now()
		crowd(func(l *redlatch.Lock) (*redlatch.Hold, error) { return l.TryAcquire(bg, 10*time.Second) })
		if n := asked.Of("client.tell"); n != 0 {
			t.Errorf("%d questions in %v", n, time.Since(start))
		}
		start = time.Now()
		crowd(func(l *redlatch.Lock) (*redlatch.Hold, error) {
			for {
				if h, err := l.TryAcquire(bg, 45*time.Millisecond); err == nil {
					return h, nil
				}
			}
		})
		if n, most := asked.Of("client.tell"), 2*int(time.Since(start)/time.Second+1); n > most {
			t.Errorf("%d questions of two clients in %v", n, time.Since(start))
		}
	})
}

// Several locks as one are waited for in short turns. They are no waits that end.
func TestSeveralLocksAsOneAskOnceForTheWholeWait(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var asked locktest.Counter
		c := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: asked.Hook})
		h := w.Acquire(bg, redlatch.MultiLock(locktest.With(w.Client(redlatch.Config{}).Lock("b"), redlatch.Note("import"))))
		time.Sleep(time.Second)
		l := redlatch.MultiLock(c.Lock("a", redlatch.Fenced()), c.Lock("b", redlatch.Fenced()))
		ctx, cancel := context.WithCancel(bg)
		waiting := locktest.Later(func() error { _, err := l.Acquire(ctx); return err })
		time.Sleep(time.Minute)
		cancel()
		if err := <-waiting; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if n := asked.Of("client.tell"); n != 0 {
			t.Errorf("%d questions for a wait without end", n)
		}
		if e := refusal(bg, t, l, 20*time.Second); e.Note != "import" || e.Name != "b" {
			t.Errorf("%+v", e)
		}
		if n := asked.Of("client.tell"); n != 1 {
			t.Errorf("%d questions", n)
		}
		w.Release(h)
	})
}

// A caller would have waited for an answer, or missed the lock for it.
func TestNeitherTheEndOfAWaitNorTheLockWaitsForTheHoldersAnswer(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var asked atomic.Int64
		c := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "client.tell" {
				asked.Add(1)
				time.Sleep(time.Hour)
			}
			return next()
		}})
		h := w.Acquire(bg, locktest.With(w.Client(redlatch.Config{}).Lock("orders"), redlatch.Note("import")))
		start := time.Now()
		if e := refusal(bg, t, c.Lock("orders"), 400*time.Millisecond); time.Since(start) != 400*time.Millisecond || e.Note != "" {
			t.Errorf("after %v: %+v", time.Since(start), e)
		}
		start = time.Now()
		next := locktest.Later(func() *redlatch.Hold { h, _ := c.Lock("orders").TryAcquire(bg, time.Second); return h })
		time.Sleep(900 * time.Millisecond) // it has asked by now
		w.Release(h)
		got := <-next
		if d := time.Since(start); got == nil || d > 950*time.Millisecond {
			t.Fatalf("after %v: %v", d, got)
		}
		if asked.Load() == 0 {
			t.Error("nothing was asked, so this shows nothing")
		}
		w.Release(got)
		time.Sleep(2 * time.Hour) // for what waits in the hook
	})
}

// A user without the right had its log filled, or asked for ever.
func TestAUserThatMayNotAskHearsNothingAndIsQuiet(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var asked atomic.Int64
		var log bytes.Buffer
		c := w.Tapped(redlatch.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}, &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "client.tell" {
				asked.Add(1)
				return driver.Reply{}, driver.ServerError("NOPERM No permissions to access a channel", nil)
			}
			return next()
		}})
		h := w.Acquire(bg, locktest.With(w.Client(redlatch.Config{}).Lock("orders"), redlatch.Note("import")))
		for range 10 {
			if e := refusal(bg, t, c.Lock("orders"), 2*time.Second); e.Note != "" || e.For != 0 || e.Owner != h.ID() {
				t.Errorf("%+v", e)
			}
		}
		if n := asked.Load(); n != 1 {
			t.Errorf("%d questions", n)
		}
		synctest.Wait()
		if log.Len() > 0 {
			t.Error(log.String())
		}
		w.Release(h)
	})
}

// Anybody who may use locks may answer. What he says is printed, and he cannot
// answer for what nobody has asked.
func TestAnAnswerThatLiesHarmsNobody(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		owner := wire.NewClientID() + ":7"
		w.Server.HSet("orders", owner, "1")
		w.Server.SetTTL("orders", time.Hour)
		liedTo := func(lie func(nonce string) string) (c *redlatch.Client) {
			c = w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(s string, args []string, next func() (driver.Reply, error)) (driver.Reply, error) {
				if s == "client.tell" {
					var q struct{ Nonce string }
					if err := json.Unmarshal([]byte(args[1]), &q); err != nil || args[0] != "redlatch_control:"+strings.TrimSuffix(owner, ":7") {
						t.Errorf("%q: %v", args, err)
					}
					w.Server.Publish("redlatch_control:"+c.ID(), lie(q.Nonce))
				}
				return next()
			}})
			return c
		}
		answer := func(nonce, name, owner, note string) string {
			text, _ := json.Marshal(map[string]any{"op": "held", "nonce": nonce, "claim": map[string]any{"name": name, "owner": owner, "ago": 5000, "note": note}})
			return string(text)
		}
		for what, tc := range map[string]struct {
			lie  func(nonce string) string
			want string
		}{
			"nothing of a kind":  {func(string) string { return `{"op":"held"}` }, ""},
			"no JSON":            {func(string) string { return "\x00held" }, ""},
			"another question":   {func(string) string { return answer("ABC", "orders", owner, "x") }, ""},
			"another lock":       {func(nonce string) string { return answer(nonce, "others", owner, "x") }, ""},
			"another owner":      {func(nonce string) string { return answer(nonce, "orders", wire.NewClientID()+":7", "x") }, ""},
			"another hold":       {func(nonce string) string { return answer(nonce, "orders", owner+"7", "x") }, ""},
			"too long a message": {func(nonce string) string { return answer(nonce, "orders", owner, strings.Repeat("x", 5000)) }, ""},
			"too long a note":    {func(nonce string) string { return answer(nonce, "orders", owner, strings.Repeat("x", 1000)) }, strings.Repeat("x", 200)},
			"a terminal's":       {func(nonce string) string { return answer(nonce, "orders", owner, "\x1b[31mred\r\n\u202eback") }, `\x1b[31mred\r\n\u202eback`},
			"no text": {func(nonce string) string {
				return strings.Replace(answer(nonce, "orders", owner, "%"), "%", "\xff\xfe", 1)
			}, "\ufffd\ufffd"},
			"a note": {func(nonce string) string { return answer(nonce, "orders", owner, `<b>"half"</b>`) }, `<b>"half"</b>`},
		} {
			e := refusal(bg, t, liedTo(tc.lie).Lock("orders"), time.Second)
			if e.Note != tc.want || (e.For != 0) != (tc.want != "") || strings.ContainsAny(e.Error(), "\x1b\r\n\u202e") {
				t.Errorf("%s: %+q: %v", what, e.Note, e)
			}
		}
	})
}

// A note that is wrong was shown, or one of a hold that is over.
func TestANoteIsOfALiveHoldAndCanBeShown(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		h := w.Acquire(bg, c.Lock("orders", redlatch.Note("first")))
		for _, bad := range []string{strings.Repeat("x", 201), "\xff", strings.Repeat("é", 100) + "x"} {
			w.WantErr(h.SetNote(bad), redlatch.ErrInvalid)
			_, err := c.Lock("others", redlatch.Note(bad)).Acquire(bg)
			w.WantErr(err, redlatch.ErrInvalid)
		}
		shown := func() (notes []string) {
			p, err := admin.New(c).Participants(bg, admin.Question{})
			w.OK(err)
			for _, x := range p.Clients {
				for _, claim := range append(x.Held, x.Lost...) {
					notes = append(notes, claim.Note)
				}
			}
			return notes
		}
		if got := shown(); len(got) != 1 || got[0] != "first" {
			t.Errorf("%q", got)
		}
		for _, note := range []string{strings.Repeat("é", 100), "a\nb\x1b", ""} {
			w.OK(h.SetNote(note))
			if got := shown(); len(got) != 1 || got[0] != wire.Text(note) {
				t.Errorf("%q", got)
			}
		}
		if info, err := admin.LockInfo(bg, c.Lock("orders")); err != nil || len(info.Holders) != 1 || info.Holders[0].Note != "" {
			t.Errorf("%+v: %v", info, err)
		}
		w.OK(h.SetNote("last"))
		if info, err := admin.LockInfo(bg, c.Lock("orders")); err != nil || len(info.Holders) != 1 || info.Holders[0].Note != "last" {
			t.Errorf("%+v: %v", info, err)
		}
		if fields, _ := w.Server.HKeys("orders"); len(fields) != 1 {
			t.Errorf("the lock has the fields %q", fields)
		}
		inner := w.Acquire(h.Context(), c.Lock("orders", redlatch.Note("inner")))
		if e := refusal(bg, t, c.Lock("orders"), 0); e.Note != "inner" {
			t.Errorf("%+v", e)
		}
		w.Release(inner)
		if e := refusal(bg, t, c.Lock("orders"), 0); e.Note != "last" {
			t.Errorf("%+v", e)
		}
		w.Release(h)
		w.WantErr(h.SetNote("after"), redlatch.ErrNotHeld)
		h = w.Acquire(bg, c.Lock("orders", redlatch.Note("lost")))
		w.Server.Del("orders")
		<-h.Context().Done()
		w.WantErr(h.SetNote("after"), redlatch.ErrLost)
		if got := shown(); len(got) != 1 || got[0] != "" {
			t.Errorf("of a lost hold: %q", got)
		}
		w.WantErr(h.Release(bg), redlatch.ErrLost)
	})
}

// What was said of several as one was not seen of each.
func TestANoteOfSeveralIsThatOfEach(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		sem := semaphore.NewExpirable(c, "rooms", 5, redlatch.Note("began"))
		permits, err := sem.Acquire(bg, 2)
		w.OK(err)
		both := w.Acquire(bg, redlatch.MultiLock(c.Lock("a"), c.Lock("b", redlatch.Note("began"))))
		notes := func() map[string]string {
			all := map[string]string{}
			p, err := admin.New(c).Participants(bg, admin.Question{})
			w.OK(err)
			for _, x := range p.Clients {
				for _, claim := range x.Held {
					all[claim.Name] += "," + claim.Note
				}
			}
			return all
		}
		if got := notes(); got["a"] != "," || got["b"] != ",began" || got["rooms"] != ",began,began" {
			t.Errorf("%q", got)
		}
		w.OK(permits.SetNote("half"))
		w.OK(both.SetNote("half"))
		if got := notes(); got["a"] != ",half" || got["b"] != ",half" || got["rooms"] != ",half,half" {
			t.Errorf("%q", got)
		}
		w.OK(both.Members()[0].SetNote("more"))
		w.OK(permits.Members()[0].SetNote("more"))
		if got := notes(); got["a"] != ",more" || got["b"] != ",half" || !strings.Contains(got["rooms"], "more") || !strings.Contains(got["rooms"], "half") {
			t.Errorf("%q", got)
		}
		w.WantErr(permits.SetNote("\xff"), redlatch.ErrInvalid)
		w.Release(both)
		w.Release(permits)
		w.WantErr(both.SetNote("after"), redlatch.ErrNotHeld)
		w.WantErr(permits.SetNote("after"), redlatch.ErrNotHeld)
	})
}

// Whoever floods a holder with questions had it answer all of them.
func TestAHolderAnswersSoManyQuestionsASecond(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var told locktest.Counter
		c := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: told.Hook})
		h := w.Acquire(bg, c.Lock("orders", redlatch.Note("import")))
		time.Sleep(time.Second)
		ask := func(from, owner string) {
			w.Server.Publish("redlatch_control:"+c.ID(), `{"op":"hold","name":"orders","owner":"`+owner+`","from":"`+from+`","nonce":"A"}`)
		}
		for _, from := range []string{"", "x", c.ID() + ":1", "*", "orders"} {
			ask(from, h.ID())
		}
		ask(wire.NewClientID(), h.ID()+"7")
		synctest.Wait()
		if n := told.Of("client.tell"); n != 0 {
			t.Errorf("%d answers to nobody, or about nothing", n)
		}
		time.Sleep(time.Second)
		for range 1000 {
			ask(wire.NewClientID(), h.ID())
		}
		time.Sleep(100 * time.Millisecond)
		if n := told.Of("client.tell"); n != 100 {
			t.Errorf("%d answers", n)
		}
		w.Release(h)
	})
}

// A lock that passes within a process keeps its owner id. So its next holder had
// the note of one that was long over, and seemed to have the lock for as long as
// both.
func TestTheNoteOfAHoldThatHasPassedOnIsForgotten(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		a, b := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		first := w.Acquire(bg, a.Lock("orders", redlatch.Note("first job")))
		waits := locktest.Later(func() *redlatch.Hold { return w.Acquire(bg, a.Lock("orders")) })
		synctest.Wait()
		if e := refusal(bg, t, b.Lock("orders"), 2*time.Millisecond); e.Note != "first job" {
			t.Fatalf("%+v", e)
		}
		w.Release(first)
		next := <-waits
		if next.ID() != first.ID() {
			t.Fatal("another owner id, so this shows nothing")
		}
		time.Sleep(31 * time.Second)
		if e := refusal(bg, t, b.Lock("orders"), 0); e.Note != "" || e.For != 0 || e.Owner != next.ID() {
			t.Errorf("of a try, later: %+v", e)
		}
		if e := refusal(bg, t, b.Lock("orders"), time.Second); e.Note != "" || e.For < 31*time.Second || e.For > 33*time.Second {
			t.Errorf("of a wait: %+v", e)
		}
		w.Release(next)
	})
}

// A note of what has been detached was taken and seen by nobody.
func TestANoteOfWhatIsDetachedIsRefused(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		h := w.Acquire(bg, c.Lock("orders", redlatch.Lease(time.Minute)))
		w.Detach(h)
		w.WantErr(h.SetNote("half"), redlatch.ErrNotHeld)
		permits, err := w.Permits(c, 2, redlatch.Lease(time.Minute)).Acquire(bg, 2)
		w.OK(err)
		first, second := permits.Members()[0], permits.Members()[1]
		w.Detach(first)
		w.WantErr(first.SetNote("half"), redlatch.ErrNotHeld)
		w.OK(permits.SetNote("half"))
		p, err := admin.New(c).Participants(bg, admin.Question{})
		w.OK(err)
		if len(p.Clients) != 1 || len(p.Clients[0].Held) != 1 || p.Clients[0].Held[0].Note != "half" {
			t.Errorf("%+v", p.Clients)
		}
		w.Detach(second)
		w.WantErr(permits.SetNote("over"), redlatch.ErrNotHeld)
		w.OK(h.Err())
		w.Release(h)
		w.Release(permits)
		w.WantErr(h.SetNote("after"), redlatch.ErrNotHeld)
	})
}

// A member that a RedLock gets late had what it was acquired with as its note for
// ever.
func TestALateMemberOfARedLockHasTheLatestNote(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var locks []*redlatch.Lock
		var late *redlatch.Client
		var w *locktest.World
		for i := range 3 {
			w = locktest.NewWorld(t)
			late = w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
				if s == "lock.take" && i == 2 {
					time.Sleep(300 * time.Millisecond)
				}
				return next()
			}})
			locks = append(locks, late.Lock("orders", redlatch.Note("began")))
		}
		h := w.Acquire(bg, redlatch.RedLock(locks...))
		if n := len(h.Members()); n != 2 {
			t.Fatalf("%d members, so this shows nothing", n)
		}
		w.OK(h.SetNote("half"))
		time.Sleep(time.Second)
		p, err := admin.New(late).Participants(bg, admin.Question{})
		if err != nil || len(h.Members()) != 3 || len(p.Clients) != 1 || len(p.Clients[0].Held) != 1 || p.Clients[0].Held[0].Note != "half" {
			t.Errorf("%+v, %v", p.Clients, err)
		}
		w.Release(h)
	})
}
