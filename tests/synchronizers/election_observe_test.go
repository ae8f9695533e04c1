package synchronizers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/election"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// Who looks sees each leader, and in the end the last one.
func TestAnObserverSeesEveryLeaderAndTheLast(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		watcher := election.New(w.Client(redlatch.Config{}), name)
		var seen []election.Leader
		ctx, stop := context.WithCancelCause(bg)
		watched := make(chan struct{})
		go func() {
			defer close(watched)
			for l, err := range watcher.Observe(ctx) {
				w.OK(err)
				seen = append(seen, l)
			}
		}()
		if l, err := watcher.Leader(bg); err != nil || l != (election.Leader{}) {
			t.Errorf("Leader: %+v, %v", l, err)
		}
		synctest.Wait() // it has seen that there is nobody
		var want []string
		first := int64(0) // the number of the first term
		for i := range 3 {
			who := fmt.Sprintf("billing-%d", i)
			c := stand(w, redlatch.Config{Identity: redlatch.Identity{Name: who, Host: "h", PID: 7}}, nil)
			lead := <-c.terms
			time.Sleep(10 * time.Second)
			if i == 0 {
				first = term(lead)
			}
			l, err := watcher.Leader(bg)
			if err != nil || l.Owner != redlatch.HoldFrom(lead).ID() || l.Client != c.client.ID() || l.Term != first+int64(i) || l.By != who+"@h pid 7" {
				t.Errorf("Leader: %+v, %v", l, err)
			}
			c.end(w)
			start := time.Now()
			time.Sleep(20 * time.Millisecond)
			synctest.Wait()
			if n := len(seen); n == 0 || seen[n-1].Owner != "" {
				t.Errorf("%v after the end of a term it is not seen: %+v", time.Since(start), seen)
			}
			want = append(want, fmt.Sprint(" ", l.Term), fmt.Sprint(who, "@h pid 7 ", l.Term), fmt.Sprint("nobody ", l.Term))
		}
		want = slices.Insert(want, 0, "nobody 0")
		stop(redlatch.ErrClosed) // as whoever closes another client may
		<-watched
		var got []string
		for _, l := range seen {
			by := l.By
			if l.Owner == "" {
				by = "nobody"
			}
			got = append(got, fmt.Sprint(by, " ", l.Term))
		}
		if !slices.Equal(got, want) {
			t.Errorf("saw %s, want %s", strings.Join(got, ", "), strings.Join(want, ", "))
		}
	})
}

// Of an outage an observer is told once, and it goes on.
func TestAnObserverOutlastsAnOutage(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var down atomic.Bool
		watcher := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: locktest.Failing(&down, locktest.ErrRefused)})
		c := stand(w, redlatch.Config{}, nil)
		lead := <-c.terms
		var got []string
		ctx, stop := context.WithCancel(bg)
		watched := make(chan struct{})
		go func() {
			defer close(watched)
			for l, err := range election.New(watcher, name).Observe(ctx) {
				switch {
				case errors.Is(err, redlatch.ErrUnavailable):
					got = append(got, "away")
				case err != nil:
					t.Error(err)
				default:
					got = append(got, fmt.Sprint(l.Term))
				}
			}
		}()
		time.Sleep(time.Second)
		down.Store(true)
		time.Sleep(5 * time.Minute)
		down.Store(false)
		time.Sleep(time.Minute)
		stop()
		<-watched
		c.end(w)
		number := fmt.Sprint(term(lead))
		if want := []string{number, "away", number}; !slices.Equal(got, want) {
			t.Errorf("saw %q, want %q", got, want)
		}
		_ = watcher.Close()
		for _, err := range election.New(watcher, name).Observe(bg) {
			w.WantErr(err, redlatch.ErrClosed)
		}
	})
}

// An error that cannot pass was left out if one that may came before, and the
// observer went on for ever.
func TestAnObserverIsToldWhatCannotPassAfterAnOutage(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var fails atomic.Pointer[driver.RunError]
		watcher := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(_ string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if err := fails.Load(); err != nil {
				return driver.Reply{}, err
			}
			return next()
		}})
		fails.Store(locktest.ErrRefused)
		denied := &driver.RunError{Outcome: driver.NotExecuted, Code: "NOPERM", Err: errors.New("NOPERM no")}
		var got []error
		ctx, stop := context.WithTimeout(bg, time.Hour)
		defer stop()
		for _, err := range election.New(watcher, name).Observe(ctx) {
			got = append(got, err)
			fails.Store(denied)
		}
		if len(got) != 2 {
			t.Fatalf("saw %v", got)
		}
		w.WantErr(got[0], redlatch.ErrUnavailable)
		w.WantErr(got[1], denied)
	})
}

// The counter of a fenced lock may be forgotten while somebody holds the lock.
func TestATermHasItsNumberForAsLongAsItLasts(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		cfg := redlatch.Config{TokenTTL: time.Minute}
		w.Release(w.Acquire(bg, w.Client(cfg).Lock(name, redlatch.Fenced()))) // which has its counter forgotten
		leader, watcher := election.New(w.Client(cfg), name), election.New(w.Client(cfg), name)
		ctx, stop := context.WithTimeout(bg, 10*time.Minute)
		defer stop()
		var seen []election.Leader
		watched := make(chan struct{})
		go func() {
			defer close(watched)
			for l, err := range watcher.Observe(ctx) {
				if err == nil {
					seen = append(seen, l)
				}
			}
		}()
		_ = leader.Run(ctx, func(ctx context.Context, _ int64) error {
			time.Sleep(5 * time.Minute)
			if l, err := watcher.Leader(bg); err != nil || l.Term != term(ctx) {
				t.Errorf("%+v, %v; want term %d", l, err, term(ctx))
			}
			return errEnough
		})
		stop()
		<-watched
		for i, l := range seen {
			if l.Owner != "" && (l.Term == 0 || i > 0 && l.Owner == seen[i-1].Owner && l.Term != seen[i-1].Term) {
				t.Errorf("the number of a term changes: %+v", seen)
			}
		}
	})
}
