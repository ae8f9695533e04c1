package waitq

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch/internal/claim"
	"github.com/redlatch/redlatch/internal/puppet"
	"github.com/redlatch/redlatch/internal/request"
)

const outage = 10 * time.Second

// A desk is a queue whose worker is what a test does next.
type desk struct {
	Queue[string]

	*testing.T
	server  *request.Server
	workers int // how many have begun
}

// inFakeTime calls f with a queue in a time of its own.
func inFakeTime(t *testing.T, f func(d *desk)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server, err := request.New(request.Options{
			Driver: puppet.New(), Outage: outage, Length: 30 * time.Second, Classic: true,
			Public: func(fact error) error { return fact },
		})
		if err != nil {
			t.Fatal(err)
		}
		d := &desk{T: t, server: server}
		d.Start(server, []string{"key"}, func() { d.workers++ })
		f(d)
		server.Leave()
		server.End(time.Second)
		synctest.Wait()
	})
}

// A caller is a waiter on a goroutine of its own.
type caller struct {
	*Waiter[string]

	end   chan error // how its wait has ended
	left  error      // why it has left by itself
	leave func()     // has its context end
}

// waits lines up a caller, which waits.
func (d *desk) waits(want string, of ...func(c *caller)) *caller {
	d.Helper()
	ctx, cancel := context.WithCancel(d.Context())
	c := &caller{Waiter: &Waiter[string]{Want: want, Wait: claim.Wait{Ctx: ctx, Since: time.Now()}}, end: make(chan error, 1), leave: cancel}
	for _, x := range of {
		x(c)
	}
	d.Lock()
	d.JoinLocked(c.Waiter, func() {})
	d.Unlock()
	go func() {
		c.end <- d.Await(c.Waiter, func(why error) error { c.left = why; return why })
		cancel()
	}()
	synctest.Wait()
	return c
}

// tell tells a caller, and says whether it was there to hear it.
func (d *desk) tell(c *caller, err error) bool {
	d.Lock()
	defer d.Unlock()
	return d.TellLocked(c.Waiter, err)
}

// ended fails the test unless a caller has got that.
func (d *desk) ended(c *caller, want error) {
	d.Helper()
	synctest.Wait()
	select {
	case err := <-c.end:
		if !errors.Is(err, want) {
			d.Errorf("%s: %v, want %v", c.Want, err, want)
		}
	default:
		d.Errorf("%s still waits, want %v", c.Want, want)
	}
}

// wants is what those want who are asked for next.
func (d *desk) wants(most int) (all []string) {
	for _, w := range d.Batch(most) {
		all = append(all, w.Want)
	}
	return all
}

func (d *desk) isInLine(want ...string) {
	d.Helper()
	d.Lock()
	defer d.Unlock()
	var all []string
	for w := range d.Line.All() {
		all = append(all, w.Want)
	}
	if !slices.Equal(all, want) {
		d.Errorf("in line are %q, want %q", all, want)
	}
}

var errOwn = errors.New("what a caller is told")

func TestCallersAreAskedForInOrderByOneWorker(t *testing.T) {
	inFakeTime(t, func(d *desk) {
		a, b, c := d.waits("a"), d.waits("b"), d.waits("c")
		if d.workers != 1 {
			t.Errorf("%d workers", d.workers)
		}
		if a.Nth != 1 || b.Nth != 2 || c.Nth != 3 || d.Came != 3 {
			t.Errorf("they came as %d, %d and %d of %d", a.Nth, b.Nth, c.Nth, d.Came)
		}
		if got := d.wants(2); !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("asked for %q", got)
		}
		if !d.tell(a, nil) || !d.tell(c, errOwn) {
			t.Error("they were not there")
		}
		d.ended(a, nil)
		d.ended(c, errOwn)
		d.isInLine("b")
		d.Lock()
		d.TellAllLocked(errOwn)
		d.Unlock()
		d.ended(b, errOwn)
		if got := d.wants(2); got != nil {
			t.Errorf("asked for %q", got)
		}
		d.tell(d.waits("d"), nil)
		if d.workers != 2 {
			t.Errorf("%d workers: the first one has ended", d.workers)
		}
	})
}

// What is given to a caller that has left has to be given back.
func TestACallerLeavesWhileItIsAskedFor(t *testing.T) {
	inFakeTime(t, func(d *desk) {
		a, b := d.waits("a"), d.waits("b")
		d.wants(1)
		a.leave()
		d.ended(a, context.Canceled)
		if d.tell(a, nil) {
			t.Error("it was told after it had left")
		}
		if !errors.Is(a.left, context.Canceled) {
			t.Errorf("left with %v", a.left)
		}
		d.isInLine("b")
		if start := time.Now(); d.Sleep(time.Hour, nil) || time.Since(start) > 0 {
			t.Error("the worker sleeps, although the next one may want less")
		}
		b.leave()
		d.ended(b, context.Canceled)
		d.isInLine()
	})
}

// Both at once: what it was told says more.
func TestACallerThatIsToldInItsLastMomentHasThat(t *testing.T) {
	inFakeTime(t, func(d *desk) {
		for range 100 { // which comes first is chance
			ctx, cancel := context.WithCancel(d.Context())
			w := &Waiter[string]{Wait: claim.Wait{Ctx: ctx}}
			d.Lock()
			d.PushLocked(w)
			d.Unlock()
			how := request.Waiting{Since: time.Now(), At: time.Now(), Do: func() {
				d.Lock()
				defer d.Unlock()
				d.TellLocked(w, errOwn)
				cancel()
			}}
			if err := d.AwaitAs(w, &how, func(why error) error { return why }); !errors.Is(err, errOwn) {
				t.Fatal(err)
			}
		}
	})
}

func TestACallerLeavesWhenItsTimeIsOver(t *testing.T) {
	inFakeTime(t, func(d *desk) {
		a := d.waits("a", func(c *caller) { c.Until = time.Now().Add(time.Second) })
		time.Sleep(time.Second - 1)
		d.isInLine("a")
		time.Sleep(time.Nanosecond)
		d.ended(a, request.ErrWaitOver)
		d.isInLine()
	})
}

func TestEverybodyLeavesWhenTheClientIsClosed(t *testing.T) {
	inFakeTime(t, func(d *desk) {
		a := d.waits("a")
		late := &Waiter[string]{Wait: claim.Wait{Ctx: d.Context(), Since: time.Now()}}
		d.server.Stop()
		d.ended(a, request.ErrClosed)
		d.Lock()
		d.JoinLocked(late, func() {})
		d.Unlock()
		if got := d.Batch(1); got != nil {
			t.Error("somebody is asked for")
		}
		if err := d.Await(late, func(error) error { return nil }); !errors.Is(err, request.ErrClosed) {
			t.Errorf("one that came late: %v", err)
		}
		if start := time.Now(); d.Sleep(time.Hour, nil) || time.Since(start) > 0 {
			t.Error("the worker sleeps")
		}
	})
}

// The worker's requests fail. Each caller has its own time, and another attempt
// that fails gives nobody more of it.
func TestAnOutageEndsEachCallersWaitByItself(t *testing.T) {
	inFakeTime(t, func(d *desk) {
		why := errors.New("no memory")
		a := d.waits("a")
		d.Refusals.Note(why, time.Now())
		time.Sleep(4 * time.Second)
		b := d.waits("b")
		d.Refusals.Note(why, time.Now())
		time.Sleep(outage - 4*time.Second)
		d.ended(a, why)
		if !errors.Is(a.left, request.ErrUnavailable) {
			t.Errorf("left with %v", a.left)
		}
		d.isInLine("b")
		time.Sleep(4*time.Second - 1)
		d.isInLine("b")
		time.Sleep(time.Nanosecond)
		d.ended(b, why)
		d.Refusals.Over()
		c := d.waits("c")
		time.Sleep(time.Hour)
		d.isInLine("c")
		d.tell(c, nil)
	})
}

func TestARequestLastsWhileAnybodyIsInLine(t *testing.T) {
	inFakeTime(t, func(d *desk) {
		a, b := d.waits("a"), d.waits("b")
		first := d.While(a.Waiter)
		a.leave()
		d.ended(a, context.Canceled)
		second := d.While(b.Waiter)
		d.tell(b, nil)
		if first.Err() != nil || second.Err() == nil {
			t.Errorf("the context of before: %v; that of now: %v", first.Err(), second.Err())
		}
		if err := d.While(b.Waiter).Err(); err == nil {
			t.Error("nobody is in line, and it lasts")
		}
		c := d.waits("c", func(c *caller) { c.Ctx = context.WithValue(c.Ctx, d, "its value") })
		if got := d.While(c.Waiter).Value(d); got != "its value" || !d.tell(c, nil) {
			t.Errorf("of the value of the caller's context this is left: %v", got)
		}
	})
}

func TestAWorkerSleepsUntilThereIsSomethingToDo(t *testing.T) {
	inFakeTime(t, func(d *desk) {
		start := time.Now()
		after := func(want time.Duration, what string) {
			t.Helper()
			if got := time.Since(start); got != want {
				t.Errorf("%s after %v, want %v", what, got, want)
			}
			start = time.Now()
		}
		news := make(chan struct{}, 1)
		d.Sleep(time.Minute, news)
		after(time.Minute, "nothing")
		time.AfterFunc(time.Second, d.Nudge)
		d.Nudge()
		d.Batch(1) // as if it had been asked for
		if d.Sleep(time.Minute, news) {
			t.Error("a nudge is news")
		}
		after(time.Second, "a nudge")
		d.Nudge()
		d.Nudge()
		d.Sleep(time.Minute, news)
		d.Sleep(time.Minute, news)
		after(time.Minute, "two nudges are one, and the next sleep")
		news <- struct{}{}
		if !d.Sleep(time.Minute, news) {
			t.Error("news are none")
		}
		after(0, "news")
	})
}

func TestWhoLinesUpAgainIsTheLast(t *testing.T) {
	inFakeTime(t, func(d *desk) {
		a := d.waits("a")
		d.tell(a, nil)
		d.ended(a, nil)
		b := d.waits("b")
		d.Lock()
		d.PushLocked(a.Waiter)
		d.Unlock()
		d.isInLine("b", "a")
		if a.Nth != 3 || a.Gone {
			t.Errorf("it is caller %d, gone: %v", a.Nth, a.Gone)
		}
		if !d.tell(a, errOwn) || !d.tell(b, nil) {
			t.Error("they were not there")
		}
		if err := d.Await(a.Waiter, nil); !errors.Is(err, errOwn) {
			t.Error(err)
		}
	})
}

func TestThoseWhoOnlyTryAreSeenByNobody(t *testing.T) {
	inFakeTime(t, func(d *desk) {
		a, once := d.waits("a"), d.waits("once", func(c *caller) { c.Once = true })
		var list claim.List
		d.Claims(&list, func(w *Waiter[string]) claim.Claim { return claim.Claim{Name: w.Want} })
		var names []string
		list.Tell(func(c claim.Claim, of context.Context) bool {
			names = append(names, c.Name)
			if !c.Waits || of != a.Ctx {
				t.Errorf("%+v", c)
			}
			return true
		})
		if !slices.Equal(names, []string{"a"}) {
			t.Errorf("%q are seen", names)
		}
		d.tell(a, nil)
		d.tell(once, nil)
		crowd := make([]*Waiter[string], claim.Most+5)
		for i := range crowd {
			crowd[i] = &Waiter[string]{}
			d.PushLocked(crowd[i])
		}
		d.Claims(&list, func(*Waiter[string]) claim.Claim { return claim.Claim{} })
		seen, rest := 0, 0
		list.Tell(func(c claim.Claim, _ context.Context) bool { seen++; rest += c.Count; return true })
		if seen != claim.Most+1 || rest != 5 {
			t.Errorf("of a crowd %d are told, and %d counted", seen, rest)
		}
		d.TellAllLocked(nil)
	})
}
