package interop

import (
	"errors"
	"strconv"
	"testing"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/wire"
	"github.com/redlatch/redlatch/tests/interop/peer"
)

// token returns what the lock's counter says.
func (w *world) token() int64 {
	w.t.Helper()
	text, _ := w.server.MustDo("GET", wire.Prefix(wire.LockToken, w.name)).(string)
	n, _ := strconv.ParseInt(text, 10, 64) // 0 if there is none
	return n
}

// takeToken is take with the token that came with the lock.
func (l javaLock) takeToken() int64 {
	l.w.t.Helper()
	token, err := l.TryLockToken(l.w.ctx, generous, 0)
	if err != nil || token == 0 {
		l.w.t.Fatalf("Java: tryLockAndGetToken: %d, %v", token, err)
	}
	return token
}

// wantToken checks a token, and that it is the last one.
func (w *world) wantToken(whose string, got, want int64) {
	w.t.Helper()
	if got != want || w.token() != want {
		w.t.Errorf("%s has token %d and Redis %d, want %d", whose, got, w.token(), want)
	}
}

// There is one sequence of tokens, whoever acquires and however: each
// acquisition has the next one, and a refusal takes none.
func TestOneTokenSequence(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		j := w.javaLock("t1")
		h := w.goHolds()
		w.wantToken("Go", h.Token(), 1)
		if token, err := j.TryLockToken(w.ctx, 0, 0); err != nil || token != 0 {
			t.Errorf("Java: tryLockAndGetToken of what Go holds: %d, %v", token, err)
		}
		if token, err := j.Token(w.ctx); err != nil || token != 1 {
			t.Errorf("Java: getToken: %d, %v, want Go's", token, err)
		}
		w.release(h)

		w.wantToken("Java", j.takeToken(), 2)
		if _, err := w.goLock().TryAcquire(w.ctx, 0); !errors.Is(err, redlatch.ErrBusy) {
			t.Errorf("Go: Try: %v, want ErrBusy", err)
		}
		w.wantToken("Java, once more,", j.takeToken(), 3)
		j.unlock()
		j.unlock()

		h = w.goHolds()
		w.wantToken("Go", h.Token(), 4)
		inner, err := w.goLock().Acquire(h.Context())
		if err != nil {
			t.Fatal(err)
		}
		w.wantToken("Go, once more,", inner.Token(), 4) // where Java's re-entry counts
		w.release(inner)
		w.release(h)

		j.take(0) // Redisson counts it although it does not tell
		if w.token() != 5 {
			t.Errorf("the token is %d after Java's tryLock, want 5", w.token())
		}
		j.unlock()
		h, err = w.goClient().Lock(w.name, redlatch.Fenced()).TryAcquire(w.ctx, generous)
		if err != nil {
			t.Fatal(err)
		}
		w.wantToken("Go's plain lock", h.Token(), 6)
		w.release(h)
		w.free()
	}, peer.Fenced)
}

// A waiter's token is higher than that of whom it waited for, also of one that
// lost the lock and does not know it.
func TestAWaitersTokenIsHigher(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		j := w.javaLock("t1")
		h := w.goHolds(redlatch.Lease(long))
		var token int64
		waiter := w.start("Java: lockAndGetToken", func() (err error) {
			token, err = j.LockToken(w.ctx, 0)
			return err
		})
		w.asleep(1)
		waiter.open()
		w.release(h)
		w.inSoon(waiter)
		w.wantToken("Java", token, h.Token()+1)

		goWaiter := w.goWaits()
		j.unlock()
		w.inSoon(goWaiter.waiting)
		w.wantToken("Go", goWaiter.hold.Token(), token+1)
		w.release(goWaiter.hold)

		j.take(short)
		late := w.token()
		goWaiter = w.goWaits()
		w.inAfterLease(goWaiter.waiting, 0)
		w.wantToken("Go", goWaiter.hold.Token(), late+1)
		j.refusesUnlock()
		w.wantToken("Go, after Java's late unlock,", goWaiter.hold.Token(), late+1)
		w.release(goWaiter.hold)
		w.free()
	}, peer.Fenced)
}

// Whoever is in has a higher token than whoever was in before: goroutines of
// two Go clients, which hand the lock on among them, and Java threads.
func TestTokensRiseInTheOrderOfTheSections(t *testing.T) {
	const (
		sections = 40 // of each
		log      = "sections"
	)
	each(t, func(t *testing.T, w *world) {
		note := func(token int64) error {
			_, err := w.server.Do("RPUSH", log, strconv.FormatInt(token, 10))
			return err
		}
		var all []*waiting
		for range 2 {
			lock := w.anotherGo().Lock(w.name, redlatch.Fenced())
			for range 3 {
				all = append(all, w.start("Go: loop", func() error {
					for range sections {
						h, err := lock.Acquire(w.ctx)
						if err == nil {
							err = errors.Join(note(h.Token()), h.Release(w.ctx))
						}
						if err != nil {
							return err
						}
					}
					return nil
				}))
			}
		}
		for _, thread := range []string{"t1", "t2"} {
			j := w.javaLock(thread)
			all = append(all, w.start("Java: loop", func() error {
				for range sections {
					token, err := j.LockToken(w.ctx, 0)
					if err == nil {
						err = errors.Join(note(token), j.Unlock(w.ctx))
					}
					if err != nil {
						return err
					}
				}
				return nil
			}))
		}
		for _, c := range all {
			c.returns()
		}
		list, _ := w.server.MustDo("LRANGE", log, "0", "-1").([]any)
		if want := 8 * sections; len(list) != want {
			t.Errorf("%d sections, want %d", len(list), want)
		}
		for i, text := range list {
			if text != strconv.Itoa(i+1) {
				t.Fatalf("section %d had token %v, want %d", i+1, text, i+1)
			}
		}
		w.server.MustDo("DEL", log)
		w.free()
	}, peer.Fenced)
}
