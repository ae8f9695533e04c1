package locks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/observe"
	"github.com/redlatch/redlatch/semaphore"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// losses are what is told of losses: lines of the log, and events.
type losses struct {
	*locktest.World
	text   bytes.Buffer
	events []observe.LostEvent
}

// client returns a client that logs.
func (l *losses) client(d driver.Redis, maxHold time.Duration) *redlatch.Client {
	return l.ClientWith(d, redlatch.Config{
		ServerName: "eu-1", MaxHold: maxHold, Identity: redlatch.Identity{Name: "billing", Host: "host-7", PID: 4121},
		Logger: slog.New(slog.NewJSONHandler(&l.text, nil)),
	}, observe.Hooks{Lost: func(e observe.LostEvent) { l.events = append(l.events, e) }})
}

// line returns the only line about a loss, without what is the same in every line.
func (l *losses) line() map[string]any {
	l.Helper()
	synctest.Wait()
	var all []map[string]any
	for text := range strings.Lines(l.text.String()) {
		line := map[string]any{}
		l.OK(json.Unmarshal([]byte(text), &line))
		if line["msg"] == "lock lost" {
			all = append(all, line)
		}
	}
	if len(all) != 1 || len(l.events) != 1 {
		l.Fatalf("%d lines and %d events: %s", len(all), len(l.events), l.text.String())
	}
	line := all[0]
	if line["client"] != "billing@host-7 pid 4121" || line["redis"] != "eu-1" || line["level"] != "ERROR" {
		l.Errorf("it does not say who this is: %v", line)
	}
	if at, _ := line["acquired_at"].(string); !strings.Contains(at, ".go:") || at != l.events[0].Site {
		l.Errorf("it does not say where it was acquired: %v", line)
	}
	for _, key := range []string{"time", "level", "msg", "client", "redis", "acquired_at"} {
		delete(line, key)
	}
	return line
}

const (
	expired  = "its lease ran out before a renewal was confirmed"
	gone     = "the server no longer has it (released by force, expired, evicted, or lost with a restart or failover)"
	watchdog = 30 * time.Second
	trusted  = watchdog - 10*time.Millisecond - watchdog/50
)

// Who is woken at three has the line, and nothing else.
func TestTheLogSaysAllOfALoss(t *testing.T) {
	for name, story := range map[string]struct {
		maxHold time.Duration
		lose    func(l *losses, c *redlatch.Client) (owner string) // of what was lost
		want    map[string]any
	}{
		"expired": {0, func(l *losses, c *redlatch.Client) string {
			h := l.Acquire(bg, c.Lock("orders"))
			time.Sleep(15 * time.Second) // one renewal
			l.Server.SetError("LOADING Redis is loading the dataset in memory")
			<-h.Context().Done()
			l.Server.SetError("")
			return h.ID()
		}, map[string]any{
			"name": "orders", "kind": "lock", "reason": "expired", "why": expired, "watchdog": true, "lease": watchdog,
			"held": 10*time.Second + trusted, "late": 0, "unconfirmed_for": trusted, "renewal_err": true,
		}},
		"its Lease is over": {0, func(l *losses, c *redlatch.Client) string {
			h := l.Acquire(bg, c.FairLock("orders", redlatch.Lease(10*time.Second)))
			<-h.Context().Done()
			return h.ID()
		}, map[string]any{
			"name": "orders", "kind": "fair lock", "reason": "lease over", "why": "its Lease was over before it was released or extended", "watchdog": false, "lease": 10 * time.Second,
			"held": 9790 * time.Millisecond, "late": 0, "unconfirmed_for": 9790 * time.Millisecond,
		}},
		"gone": {0, func(l *losses, c *redlatch.Client) string {
			h := l.Acquire(bg, c.Lock("orders", redlatch.Fenced()))
			l.Server.Del("orders")
			<-h.Context().Done()
			return h.ID()
		}, map[string]any{
			"name": "orders", "kind": "fenced lock", "reason": "gone", "why": gone, "watchdog": true, "lease": watchdog, "token": 1,
			"held": 10 * time.Second, "late": 0, "unconfirmed_for": 10 * time.Second,
		}},
		"revoked": {0, func(l *losses, c *redlatch.Client) string {
			h := l.Acquire(bg, c.ReadWriteLock("orders").Write())
			time.Sleep(12 * time.Second)
			if ok, err := admin.ForceRelease(bg, l.Client(redlatch.Config{}).ReadWriteLock("orders").Write()); err != nil || !ok {
				l.Errorf("%v, %v", ok, err)
			}
			<-h.Context().Done()
			return h.ID()
		}, map[string]any{
			"name": "orders", "kind": "read-write lock", "mode": "write", "reason": "revoked", "why": "it was released by force",
			"watchdog": true, "lease": watchdog, "held": 12 * time.Second, "late": 0, "unconfirmed_for": 2 * time.Second,
		}},
		"max hold": {65 * time.Second, func(_ *losses, c *redlatch.Client) string {
			h, err := redlatch.MultiLock(c.Lock("orders")).Acquire(bg)
			if err != nil {
				return err.Error()
			}
			<-h.Context().Done()
			return h.Members()[0].ID()
		}, map[string]any{
			"name": "orders", "kind": "lock", "one_of_several": true, "reason": "max hold", "why": "it was held for as long as MaxHold allows",
			"watchdog": true, "lease": watchdog, "held": 65 * time.Second, "late": 0, "unconfirmed_for": 5 * time.Second,
		}},
		"a reader's Lease is over": {0, func(l *losses, c *redlatch.Client) string {
			read := c.ReadWriteLock("orders").Read()
			l.Acquire(bg, read)
			h := l.Acquire(bg, locktest.With(read, redlatch.Lease(2*time.Second)))
			<-h.Context().Done()
			return h.ID()
		}, map[string]any{
			"name": "orders", "kind": "read-write lock", "mode": "read", "reason": "lease over", "why": "its Lease was over before it was released or extended",
			"watchdog": false, "lease": 2 * time.Second, "held": 1950 * time.Millisecond, "late": 0, "unconfirmed_for": 1950 * time.Millisecond,
		}},
		"a permit": {0, func(l *losses, c *redlatch.Client) string {
			p := l.Permit(l.Permits(c, 1))
			l.Server.FlushAll()
			<-p.Context().Done()
			return p.ID()
		}, map[string]any{
			"name": locktest.Pool, "kind": "expirable semaphore", "reason": "gone", "why": gone, "watchdog": true, "lease": watchdog,
			"held": 10 * time.Second, "late": 0, "unconfirmed_for": 10 * time.Second,
		}},
		"gone, as the release finds": {0, func(l *losses, c *redlatch.Client) string {
			h := l.Acquire(bg, c.Lock("orders", redlatch.Fenced()))
			time.Sleep(2 * time.Second)
			l.Server.Del("orders")
			l.WantErr(h.Release(bg), redlatch.ErrLost)
			l.WantErr(h.Release(bg), redlatch.ErrNotHeld)
			return h.ID()
		}, map[string]any{
			"name": "orders", "kind": "fenced lock", "reason": "gone", "why": gone, "watchdog": true, "lease": watchdog, "token": 1,
			"held": 2 * time.Second, "late": 0, "unconfirmed_for": 2 * time.Second,
		}},
		"a permit, as the release finds": {0, func(l *losses, c *redlatch.Client) string {
			p := l.Permit(l.Permits(c, 1))
			time.Sleep(2 * time.Second)
			l.Server.FlushAll()
			l.WantErr(p.Release(bg), redlatch.ErrLost)
			return p.ID()
		}, map[string]any{
			"name": locktest.Pool, "kind": "expirable semaphore", "reason": "gone", "why": gone, "watchdog": true, "lease": watchdog,
			"held": 2 * time.Second, "late": 0, "unconfirmed_for": 2 * time.Second,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				l := &losses{World: w}
				story.want["owner"] = story.lose(l, l.client(w.Driver(), story.maxHold))
				got, e := l.line(), l.events[0]
				if err, ok := got["renewal_err"].(string); ok { // how often it was tried is left to chance
					before, _ := got["renewal_failed_before"].(float64)
					if !strings.Contains(err, "LOADING") || before < 0 || time.Duration(before) > 2*time.Second || e.RenewErr.Error() != err {
						t.Errorf("not why no renewal was confirmed: %v, %+v", got, e)
					}
					got["renewal_err"] = true
					delete(got, "renewal_failed_before")
				}
				for key, value := range story.want {
					switch v := value.(type) { // as JSON has them
					case time.Duration:
						story.want[key] = float64(v)
					case int:
						story.want[key] = float64(v)
					}
				}
				if !maps.Equal(got, story.want) {
					t.Errorf("the log says\n%v, want\n%v", got, story.want)
				}
				if string(e.Kind) != got["kind"] || float64(e.Held) != got["held"] || string(e.Err.Reason) != got["reason"] || float64(e.Lease) != got["lease"] || e.Renewed != got["watchdog"] {
					t.Errorf("the event says something else: %+v", e)
				}
			})
		})
	}
}

// A renewal that failed before the last one that was confirmed explains nothing.
func TestAFailureBeforeAConfirmationIsNotTold(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var fail atomic.Bool
		d := &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "lock.renew" && fail.Load() {
				return driver.Reply{}, locktest.ErrReplyLost
			}
			return next()
		}}
		d.Redis = w.Driver()
		l := &losses{World: w}
		c := l.client(d, 0)
		h := w.Acquire(bg, c.Lock("orders"))
		fail.Store(true)
		time.Sleep(15 * time.Second)
		fail.Store(false)
		time.Sleep(5 * time.Second)
		w.Server.Del("orders")
		<-h.Context().Done()
		if line := l.line(); line["renewal_err"] != nil || l.events[0].RenewErr != nil {
			t.Errorf("%v", line)
		}
		if !errors.Is(h.Err(), redlatch.ErrLost) {
			t.Error(h.Err())
		}
	})
}

// Readers of a process share what they read, and holds of a nest their owner: of
// all that are lost together some were acquired by a MultiLock, and others were
// not.
func TestOnlyWhatAMultiHasAcquiredIsToldAsOneOfSeveral(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		start, told := time.Now(), map[bool][]string{}
		c := w.Client(redlatch.Config{}, observe.Hooks{Lost: func(e observe.LostEvent) {
			told[e.Several] = append(told[e.Several], e.Err.Name+" at "+e.At.Add(-e.Held).Sub(start).String())
		}})
		read := c.ReadWriteLock("orders").Read()
		several := w.Acquire(bg, redlatch.MultiLock(read, c.Lock("stock")))
		one := w.Acquire(bg, c.Lock("bills"))
		time.Sleep(time.Second)
		holds := []*redlatch.Hold{w.Acquire(bg, read), w.Acquire(several.Context(), c.Lock("stock"))}
		nested := w.Acquire(one.Context(), redlatch.MultiLock(c.Lock("bills")))
		time.Sleep(time.Second)
		w.Server.FlushAll()
		time.Sleep(time.Minute)
		synctest.Wait()
		for _, list := range told {
			slices.Sort(list)
		}
		want := map[bool][]string{
			true:  {"bills at 1s", "orders at 0s", "stock at 0s"},
			false: {"bills at 0s", "orders at 1s", "stock at 1s"},
		}
		if !maps.EqualFunc(told, want, slices.Equal) {
			t.Errorf("told of %v, want %v", told, want)
		}
		runtime.KeepAlive([]any{several, one, holds, nested})
	})
}

// docs/production.md shows the line of a hold that has expired, with its
// attributes in their order.
func TestTheDocsShowTheLineOfALoss(t *testing.T) {
	page, err := os.ReadFile("../../docs/production.md")
	if err != nil {
		t.Fatal(err)
	}
	_, shown, _ := strings.Cut(string(page), "\nlevel=ERROR msg=\"lock lost\" ")
	shown, _, ends := strings.Cut(shown, "\n```\n")
	if !ends {
		t.Fatal("docs/production.md has no line of a loss")
	}
	locktest.InFakeTime(t, func(w *locktest.World) {
		var text bytes.Buffer
		c := w.Client(redlatch.Config{
			Identity: redlatch.Identity{Name: "billing", Host: "host-7", PID: 4121}, Logger: slog.New(slog.NewTextHandler(&text, nil)),
		})
		h := w.Acquire(bg, c.Lock("orders:42"))
		time.Sleep(15 * time.Second)
		w.Server.SetError("LOADING Redis is loading the dataset in memory")
		<-h.Context().Done()
		w.Server.SetError("")
		synctest.Wait()
		_, line, _ := strings.Cut(text.String(), " msg=\"lock lost\" ")
		line, _, _ = strings.Cut(line, "\n")
		keys := regexp.MustCompile(`(?:^|\s)(\w+)=`)
		if got, want := keys.FindAllString(line, -1), keys.FindAllString(strings.Join(strings.Fields(shown), " "), -1); len(got) < 10 || !slices.Equal(got, want) {
			t.Errorf("docs/production.md shows %q, and the line has %q:\n%s", want, got, line)
		}
		for _, part := range []string{`why="` + expired + `"`, `renewal_err="redlatch: script not executed: LOADING Redis is loading the dataset in memory"`, `client="billing@host-7 pid 4121"`} {
			if !strings.Contains(line, part) || !strings.Contains(shown, part) {
				t.Errorf("%s is not in both: %s", part, line)
			}
		}
	})
}

// An attempt whose reply was lost has released the lock in time. That a later one
// finds nothing, when the lease is over, shows no loss.
func TestAReleaseWhoseReplyIsLostIsNoLoss(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var lost atomic.Int64
		var away atomic.Bool
		d := &locktest.Tap{}
		d.Hook = func(_ string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			reply, err := next()
			if away.Load() {
				return driver.Reply{}, locktest.ErrReplyLost
			}
			return reply, err
		}
		c := w.Tapped(redlatch.Config{}, d, observe.Hooks{Lost: func(observe.LostEvent) { lost.Add(1) }})
		ctx, cancel := context.WithCancel(bg)
		cancel()
		h := w.Acquire(bg, c.Lock("orders", redlatch.Lease(5*time.Second)))
		permit, err := semaphore.NewExpirable(c, "desks", 1, redlatch.Lease(5*time.Second)).Acquire(bg, 1)
		w.OK(err)
		away.Store(true)
		for _, h := range []*redlatch.Hold{h, permit} {
			if err := h.Release(ctx); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
		time.Sleep(7 * time.Second)
		away.Store(false)
		time.Sleep(time.Minute)
		if n := lost.Load(); n != 0 {
			t.Errorf("%d losses are told of, of what was released in time", n)
		}
	})
}
