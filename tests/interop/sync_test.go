package interop

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/tests/interop/peer"
)

// A javaSync is the story's semaphore, latch or rate limiter as a Java thread
// sees it. Methods are those of Sync.java.
type javaSync struct {
	w      *world
	thread peer.Thread
}

func (w *world) javaSync(thread string) javaSync {
	w.t.Helper()
	return javaSync{w, w.javaClient().Thread(thread)}
}

// try calls a method.
func (j javaSync) try(method string, c peer.Call) (peer.Answer, error) {
	j.w.t.Helper()
	c.Op = j.w.kind + "." + method
	return j.thread.Call(j.w.ctx, j.w.name, c)
}

// call calls a method, which must not throw.
func (j javaSync) call(method string, c peer.Call) peer.Answer {
	j.w.t.Helper()
	a, err := j.try(method, c)
	if err != nil {
		j.w.t.Fatalf("Java: %s: %v", method, err)
	}
	return a
}

// do calls a method that has a number for an argument, or none.
func (j javaSync) do(method string, n ...int) peer.Answer {
	j.w.t.Helper()
	return j.call(method, peer.Call{N: cmp.Or(n...)})
}

// answers checks what a method that has a number for an argument says.
func (j javaSync) answers(want bool, method string, n ...int) {
	j.w.t.Helper()
	if got := j.do(method, n...).OK; got != want {
		j.w.t.Errorf("Java: %s%v: %v, want %v", method, n, got, want)
	}
}

// throws checks that a method throws one of these exceptions.
func (j javaSync) throws(method string, c peer.Call, names ...string) {
	j.w.t.Helper()
	var thrown *peer.Error
	_, err := j.try(method, c)
	if !errors.As(err, &thrown) || !strings.Contains(strings.Join(names, " "), thrown.Name) {
		j.w.t.Errorf("Java: %s: %v, want %q", method, err, names)
	}
}

// waits calls a method that has to wait, until it sleeps beside others, who are
// so many subscriptions.
func (j javaSync) waits(others int64, method string, n ...int) *waiting {
	j.w.t.Helper()
	return j.w.sleeps(others, "Java: "+method, func() error {
		_, err := j.try(method, peer.Call{N: cmp.Or(n...)})
		return err
	})
}

// sleeps calls what has to wait, until it sleeps. Calls of one client are one
// subscription.
func (w *world) sleeps(others int64, what string, f func() error) *waiting {
	w.t.Helper()
	c := w.start(what, f)
	w.asleep(others + 1)
	c.open()
	return c
}

// counts checks numbers on both sides: what each says by its name.
func (w *world) counts(want int, said map[string]func() (int, error)) {
	w.t.Helper()
	for who, f := range said {
		if got, err := f(); err != nil || got != want {
			w.t.Errorf("%s says %d, %v, want %d", who, got, err, want)
		}
	}
}

// count is a method that returns a number, for counts.
func (j javaSync) count(method string) func() (int, error) {
	return func() (int, error) {
		a, err := j.try(method, peer.Call{})
		return a.Count, err
	}
}

// must checks that a call in Go succeeded.
func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatalf("Go: %v", err)
	}
}

// yes checks that a call in Go succeeded and said so.
func (w *world) yes(ok bool, err error) {
	w.t.Helper()
	if err != nil || !ok {
		w.t.Fatalf("Go: %v, %v, want true", ok, err)
	}
}

// no checks that a call in Go succeeded and said that it did nothing.
func (w *world) no(ok bool, err error) {
	w.t.Helper()
	if err != nil || ok {
		w.t.Errorf("Go: %v, %v, want false", ok, err)
	}
}

// is checks that an error in Go is the one that it has to be.
func (w *world) is(err, want error) {
	w.t.Helper()
	if !errors.Is(err, want) {
		w.t.Errorf("Go: %v, want %v", err, want)
	}
}

// deletes lets Java delete the object, and checks that nothing stays but what
// leaves by itself.
func (w *world) deletes(j javaSync) {
	w.t.Helper()
	j.answers(true, "delete")
	w.free()
}

// newest says whether this is not an old Redisson, which lacks some methods.
func (w *world) newest() bool { return w.version == peer.Newest }

// Guests are callers of both sides that share something, round by round, each in
// its own goroutine or Java thread; inside it never has more than so many.
type guests struct {
	w    *world
	room int
	all  []*waiting
}

func (w *world) guests(room int) *guests { return &guests{w: w, room: room} }

// member lets one more take part: enter and leave are called in turn, in so many
// rounds.
func (c *guests) member(who string, rounds int, enter, leave func() error) {
	const inside = "inside" // who is, as a list
	c.all = append(c.all, c.w.start(who, func() error {
		for range rounds {
			if err := enter(); err != nil {
				return err
			}
			n, err := c.w.server.Do("RPUSH", inside, who)
			if err == nil && n.(int64) > int64(c.room) {
				err = fmt.Errorf("%d are inside, and there is room for %d", n, c.room)
			}
			time.Sleep(2 * time.Millisecond) // or nobody would be met
			_, err2 := c.w.server.Do("LREM", inside, "1", who)
			if err := errors.Join(err, err2, leave()); err != nil {
				return err
			}
		}
		return nil
	}))
}

// ends waits until all have been in as often as they wanted.
func (c *guests) ends() {
	c.w.t.Helper()
	for _, g := range c.all {
		g.returns()
	}
}

// eachOf tells a story of one kind that is not a lock.
func eachOf(t *testing.T, kind string, story func(t *testing.T, w *world)) {
	t.Helper()
	each(t, story, kind)
}
