package clients

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/census"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// Silence is not absence: a process may stand still with what it holds.
func TestSilenceIsShownAsUnknown(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, silent := w.Client(redlatch.Config{}), w.Client(redlatch.Config{Identity: billing})
		h := w.Acquire(bg, silent.Lock("orders"))
		time.Sleep(3 * time.Second)
		w.OK(silent.Close()) // with a hold
		crowdOf(w, nil)
		synctest.Wait()
		start := time.Now()
		p := ask(w, c, admin.Question{Names: []string{"orders"}})
		if took := time.Since(start); took < 1500*time.Millisecond || took > 2*time.Second {
			t.Errorf("it took %v", took)
		}
		if p.Silent != 1 {
			t.Errorf("%d are silent", p.Silent)
		}
		if x := of(w, p, silent.ID()); x.Answered || !x.Redlatch || x.Identity.String() != billing.String() || len(x.Held) != 1 || x.Held[0].Owner != h.ID() {
			t.Errorf("%+v", x)
		}
	})
}

func TestNobodyWaitsForASilentServer(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		d := &locktest.Tap{}
		c := w.Tapped(redlatch.Config{}, d)
		synctest.Wait()
		crowdOf(w, nil)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		p, err := admin.New(c).Participants(ctx, admin.Question{})
		if !errors.Is(err, context.DeadlineExceeded) || len(p.Clients) != 1 || p.Silent != 1 {
			t.Errorf("%+v, %v", p, err)
		}
		w.OK(c.Close())
		if _, err := admin.New(c).Participants(bg, admin.Question{}); !errors.Is(err, redlatch.ErrClosed) {
			t.Error(err)
		}
		if n := d.Subs.Load(); n != 0 {
			t.Errorf("%d subscriptions are left", n)
		}
	})
}

// mute is a driver whose subscriptions are never confirmed.
type mute struct{ driver.Redis }

func TestAServerThatDoesNotHearIsUnavailable(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		m := join(w.T, mute{w.Driver()}, "deaf", nil)
		if _, err := m.Ask(bg, census.Question{}); !errors.Is(err, redlatch.ErrUnavailable) {
			t.Error(err)
		}
	})
}

func TestAQuestionThatIsNotTakenIsUnavailable(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var fails error
		m := join(w.T, &locktest.Tap{Redis: w.Driver(), Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "client.ask" && fails != nil {
				return driver.Reply{}, fails
			}
			return next()
		}}, "asker", nil)
		fails = locktest.ErrReplyLost
		if _, err := m.Ask(bg, census.Question{}); !errors.Is(err, redlatch.ErrUnavailable) || !errors.Is(err, locktest.ErrReplyLost) {
			t.Error(err)
		}
		fails = driver.ServerError("NOPERM this user has no permissions", nil)
		if _, err := m.Ask(bg, census.Question{}); err == nil || errors.Is(err, redlatch.ErrUnavailable) || driver.Failure(err).Code != "NOPERM" {
			t.Error(err)
		}
		fails = nil
		if _, err := m.Ask(bg, census.Question{}); err != nil {
			t.Error(err)
		}
	})
}

// Between a count of those who listen and the question, somebody may come or go.
// The question itself is counted.
func TestWhoComesOrGoesJustBeforeTheQuestionIsCounted(t *testing.T) {
	for name, x := range map[string]struct {
		cluster bool
		meet    func(w *locktest.World, other *redlatch.Client)
		silent  int
	}{
		"comes":              {false, func(w *locktest.World, _ *redlatch.Client) { crowdOf(w, nil) }, 1},
		"goes":               {false, func(w *locktest.World, other *redlatch.Client) { w.OK(other.Close()) }, 0},
		"comes in a cluster": {true, func(w *locktest.World, _ *redlatch.Client) { crowdOf(w, nil) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				other := w.Client(redlatch.Config{})
				c := w.Tapped(redlatch.Config{}, &locktest.Tap{Cluster: x.cluster, Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
					if s == "client.ask" {
						x.meet(w, other)
						synctest.Wait()
					}
					return next()
				}})
				synctest.Wait()
				if p := ask(w, c, admin.Question{}); p.Silent != x.silent {
					t.Errorf("%d are silent, want %d", p.Silent, x.silent)
				}
			})
		})
	}
}

// Who comes later was not asked.
func TestWhoComesAfterTheQuestionIsNotSilent(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			reply, err := next()
			if s == "client.ask" {
				crowdOf(w, nil)
				synctest.Wait()
			}
			return reply, err
		}})
		synctest.Wait()
		if p := ask(w, c, admin.Question{}); p.Silent != 0 || len(p.Clients) != 1 {
			t.Errorf("%d are silent: %+v", p.Silent, p.Clients)
		}
	})
}
