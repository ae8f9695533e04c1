package clients

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/observe"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// Two clients wait for each other: whoever asks twice is told, with who it is and
// where.
func TestAPossibleDeadlockIsToldToWhoeverAsks(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		ctx, cancel := context.WithCancel(bg)
		one := w.Client(redlatch.Config{Identity: redlatch.Identity{Name: "billing"}, CallSites: true})
		two := w.Client(redlatch.Config{Identity: redlatch.Identity{Name: "shipping"}, CallSites: true})
		var told [][]admin.CircularWait
		var log bytes.Buffer
		asker := w.Client(redlatch.Config{
			Logger: slog.New(slog.NewTextHandler(&log, nil)),
		}, observe.Hooks{PossibleDeadlock: func(e observe.PossibleDeadlockEvent) { told = append(told, e.Waits) }})
		h1, h2 := w.Acquire(bg, one.Lock("a")), w.Acquire(bg, two.Lock("b"))
		waiting := func(h *redlatch.Hold, l *redlatch.Lock) <-chan error {
			return locktest.Later(func() error {
				_, err := l.Acquire(h.With(ctx))
				return err
			})
		}
		wait1 := waiting(h1, one.Lock("b"))
		w.Settle()
		first := ask(w, asker, admin.Question{})
		if all := first.CircularWaits(); len(all) != 0 {
			t.Errorf("who waits for nobody that waits is in a circle: %v", all)
		}
		wait2 := waiting(h2, two.Lock("a"))
		for range 6 {
			time.Sleep(4 * time.Second)
			last := ask(w, asker, admin.Question{})
			if all := last.CircularWaits(); len(all) != 1 || len(all[0]) != 2 {
				t.Errorf("%v", all)
			}
			if all := last.PossibleDeadlocks(first); len(all) != 0 {
				t.Errorf("it did not stand then: %v", all)
			}
		}
		w.Settle()
		if len(told) != 1 || len(told[0]) != 2 {
			t.Fatalf("%v are told", told)
		}
		by := map[string]admin.CircularWait{told[0][0].Name: told[0][0], told[0][1].Name: told[0][1]}
		for _, want := range []struct{ name, by, owner, holder, client string }{
			{"b", "billing@", h1.ID(), h2.ID(), one.ID()},
			{"a", "shipping@", h2.ID(), h1.ID(), two.ID()},
		} {
			got := by[want.name]
			if !strings.HasPrefix(got.By, want.by) || got.Owner != want.owner || got.Holder != want.holder || got.Client != want.client || got.Waited < 10*time.Second {
				t.Errorf("%+v, want %+v", got, want)
			}
			for _, site := range []string{got.WaitSite, got.HoldSite} {
				if !strings.Contains(site, ".go:") {
					t.Errorf("no call site: %+v", got)
				}
			}
		}
		if text := log.String(); strings.Count(text, "possible deadlock") != 1 || !strings.Contains(text, "billing@") || !strings.Contains(text, "shipping@") {
			t.Errorf("the log: %s", text)
		}
		cancel()
		for _, wait := range []<-chan error{wait1, wait2} {
			w.WantErr(<-wait, context.Canceled)
		}
		w.Release(h1)
		w.Release(h2)
	})
}
