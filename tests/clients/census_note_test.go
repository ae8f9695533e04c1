package clients

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/barrier"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/wire"
	"github.com/redlatch/redlatch/redisson"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

func noteOf(c *redlatch.Client) string { return "redlatch_client:" + c.ID() }

var billing = redlatch.Identity{Name: "billing", Host: "host-7", PID: 4121}

// Nobody's first acquisition waits for it.
func TestAClientIsNotedSoonAfterTheFirstAcquisition(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{Identity: billing})
		w.Release(w.Acquire(bg, c.Lock("orders")))
		synctest.Wait()
		if w.Server.Exists(noteOf(c)) {
			t.Error("a command that is soon over would write a note")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		text, err := w.Server.Get(noteOf(c))
		w.OK(err)
		if !strings.Contains(text, `"billing"`) || !strings.Contains(text, `"host-7"`) || !strings.Contains(text, "4121") {
			t.Errorf("the note is %s", text)
		}
		if ttl := w.Server.TTL(noteOf(c)); ttl > 15*time.Minute || ttl < 14*time.Minute {
			t.Errorf("it has a TTL of %v", ttl)
		}
		for range 6 {
			time.Sleep(11 * time.Minute)
			if ttl := w.Server.TTL(noteOf(c)); ttl < 9*time.Minute {
				t.Fatalf("its TTL is %v", ttl)
			}
		}
		w.OK(c.Close())
		time.Sleep(15 * time.Minute)
		if keys := w.Server.Keys(); len(keys) > 0 {
			t.Errorf("left behind: %q", keys)
		}
	})
}

// What is left in Redis of a closed client has a name for as long as somebody may
// ask.
func TestAClientThatIsClosedWithAHoldStaysKnown(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{Identity: billing})
		w.Acquire(bg, c.Lock("orders"))
		time.Sleep(2 * time.Second)
		w.OK(c.Close())
		info, err := admin.New(w.Client(redlatch.Config{})).Info(bg, "orders")
		w.OK(err)
		if len(info.Holders) != 1 || info.Holders[0].By != "billing@host-7 pid 4121" {
			t.Errorf("%+v", info)
		}
		time.Sleep(16 * time.Minute)
		if w.Server.Exists(noteOf(c)) {
			t.Error("the note has no end")
		}
	})
}

// Who has never tried to acquire anything writes nothing, and hears no channel by
// which others could ask it to let go: it needs no right to either. It answers who
// asks for participants, and may ask itself.
func TestAClientThatOnlyLooksWritesNothing(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		holder := w.Client(redlatch.Config{Identity: billing})
		h := w.Acquire(bg, holder.Lock("orders"))
		time.Sleep(2 * time.Second)
		before := w.Server.Keys()
		var heard []string // all on this goroutine
		c := w.Tapped(redlatch.Config{}, &locktest.Tap{Subscribed: func(channel string, _ bool) { heard = append(heard, channel) }})
		if info, err := admin.New(c).Info(bg, "orders"); err != nil || info.Holders[0].By == "" {
			t.Errorf("%+v, %v", info, err)
		}
		for _, err := range admin.New(c).Objects(bg, "*") {
			w.OK(err)
		}
		for range 2 {
			p, err := admin.New(c).Participants(bg, admin.Question{})
			w.OK(err)
			if len(p.Clients) != 2 || p.Silent != 0 {
				t.Errorf("%+v", p)
			}
			time.Sleep(20 * time.Minute)
		}
		if keys := w.Server.Keys(); !slices.Equal(keys, before) {
			t.Errorf("the keys were %q, and are %q", before, keys)
		}
		if want := []string{wire.Asked, wire.Answers, wire.Answers}; !slices.Equal(heard, want) {
			t.Errorf("it has subscribed to %q", heard)
		}
		w.Release(h)
	})
}

// Whoever may be found in Redis can be asked, from the first acquisition of
// whatever type on; and who only releases by force hears the answer.
func TestAClientIsThereFromItsFirstOwnerIDOn(t *testing.T) {
	for name, first := range map[string]func(ctx context.Context, c *redlatch.Client) error{
		"a lock": func(ctx context.Context, c *redlatch.Client) error { _, err := c.Lock("free").Acquire(ctx); return err },
		"a wait": func(ctx context.Context, c *redlatch.Client) error { _, err := c.Lock("held").Acquire(ctx); return err },
		"in queue": func(ctx context.Context, c *redlatch.Client) error {
			_, err := c.FairLock("fair").Acquire(ctx)
			return err
		},
		"a writer": func(ctx context.Context, c *redlatch.Client) error {
			_, err := c.ReadWriteLock("rw").PreferWriters().Write().Acquire(ctx)
			return err
		},
		"a value": func(ctx context.Context, c *redlatch.Client) error {
			_, err := redisson.GroupLock(c, "g", []string{"v"}).Acquire(ctx)
			return err
		},
		"a barrier": func(ctx context.Context, c *redlatch.Client) error {
			_, err := barrier.New(c, "b", 2).Await(ctx)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				holder := w.Client(redlatch.Config{})
				held := w.Acquire(bg, holder.Lock("held"))
				w.Acquire(bg, holder.FairLock("fair"))
				w.Acquire(bg, holder.ReadWriteLock("rw").Read())
				c := w.Client(redlatch.Config{Identity: billing})
				listen := func() int { return w.Server.PubSubNumSub(wire.Control + ":" + c.ID())[wire.Control+":"+c.ID()] }
				if synctest.Wait(); listen() != 0 {
					t.Error("it listens before")
				}
				ctx, cancel := context.WithTimeout(bg, 4*time.Second)
				defer cancel()
				tried := locktest.Later(func() error { return first(ctx, c) })
				time.Sleep(3 * time.Second)
				if listen() != 1 || !w.Server.Exists(noteOf(c)) {
					t.Errorf("%d listen, and the keys are %q", listen(), w.Server.Keys())
				}
				w.Log(<-tried) // it may have failed, as others have what it wants

				force := w.Client(redlatch.Config{})
				if freed, err := admin.ForceRelease(bg, force.Lock("held")); !freed || err != nil {
					t.Errorf("freed %v, %v", freed, err)
				}
				w.WantErr(held.Err(), redlatch.ErrLost)
				time.Sleep(time.Minute)
				if w.Server.Exists(noteOf(force)) {
					t.Error("nobody finds it in Redis, and it has noted who it is")
				}
			})
		})
	}
}

// Nobody is kept by it: a server that is down costs a note, and the next one comes
// soon. One that refuses it is not asked again so soon.
func TestANoteThatFailsIsWrittenTheNextTime(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var fails, refuses atomic.Bool
		var tries atomic.Int64
		d := &locktest.Tap{Notes: true, Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "client.note" {
				tries.Add(1)
				switch {
				case fails.Load():
					return driver.Reply{}, locktest.ErrReplyLost
				case refuses.Load():
					return driver.Reply{}, driver.ServerError("NOPERM no", nil)
				}
			}
			return next()
		}}
		refuses.Store(true)
		c := w.Tapped(redlatch.Config{}, d)
		w.Release(w.Acquire(bg, c.Lock("orders")))
		time.Sleep(3 * time.Minute)
		if n := tries.Load(); n != 1 {
			t.Errorf("a server that refuses it was asked %d times", n)
		}
		fails.Store(true)
		refuses.Store(false)
		time.Sleep(4 * time.Minute)
		if n := tries.Load(); n < 3 {
			t.Errorf("%d tries", n)
		}
		fails.Store(false)
		time.Sleep(time.Minute)
		if !w.Server.Exists(noteOf(c)) {
			t.Error("there is no note")
		}
		fails.Store(true)
		time.Sleep(7 * time.Minute)
		if !w.Server.Exists(noteOf(c)) {
			t.Error("one failure costs the note")
		}
	})
}

func TestAForgedNoteIsShownAsText(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		w.Acquire(bg, c.Lock("orders"))
		time.Sleep(2 * time.Second)
		asked := func() (admin.Info, error) { return admin.LockInfo(bg, w.Client(redlatch.Config{}).Lock("orders")) } // who has read no note before
		for text, want := range map[string]string{
			`{"v":1,"name":"a\u001b[2J` + "\u202e" + `","host":"h"}`: `a\x1b[2J\u202e@h`,
			`{"v":2,"name":"x"}`: "", "nonsense": "", `{"v":1}`: "", `{"v":1,"name":7}`: "",
			`{"v":1,"name":"` + strings.Repeat("x", 1<<20) + `"}`: "",
		} {
			w.OK(w.Server.Set(noteOf(c), text))
			info, err := asked()
			w.OK(err)
			if got := info.Holders[0].By; got != want {
				t.Errorf("%.60s: shown as %q", text, got)
			}
		}
		w.Server.Del(noteOf(c))
		w.Server.HSet(noteOf(c), "a", "b")
		if info, err := asked(); err != nil || info.Holders[0].By != "" {
			t.Errorf("%+v, %v", info, err)
		}
		if info, err := admin.LockInfo(bg, c.Lock("orders")); err != nil || info.Holders[0].By == "" {
			t.Errorf("a client does not know itself: %+v, %v", info, err)
		}
	})
}

// Who the holders are is said on the side: nobody waits for it when the server has
// not answered once.
func TestInfoDoesNotWaitLongForNames(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var reads, pause atomic.Int64
		c := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "client.read" {
				reads.Add(1)
				time.Sleep(time.Duration(pause.Load()))
				return driver.Reply{}, locktest.ErrReplyLost
			}
			return next()
		}})
		var holds []*redlatch.Hold
		for range 4 {
			holds = append(holds, w.Acquire(bg, w.Client(redlatch.Config{}).ReadWriteLock("orders").Read()))
		}
		for _, takes := range []time.Duration{2 * time.Second, 0} {
			start := time.Now()
			reads.Store(0)
			pause.Store(int64(takes))
			info, err := admin.New(c).Info(bg, "orders")
			w.OK(err)
			if took := time.Since(start); took > time.Second || reads.Load() != 1 || len(info.Holders) != 4 {
				t.Errorf("it took %v and %d reads: %+v", took, reads.Load(), info)
			}
			time.Sleep(2 * time.Second)
		}
		for _, h := range holds {
			w.Release(h)
		}
	})
}
