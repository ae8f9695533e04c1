package clients

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/observe"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// Who asks what happened to a lock is told by the client that has lost it, and
// nobody takes that for a hold.
func TestLossesAreTold(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, asker := w.Client(redlatch.Config{Identity: billing, CallSites: true}), w.Client(redlatch.Config{})
		lose := func(name string) *redlatch.Hold {
			h := w.Acquire(bg, c.Lock(name))
			w.Server.Del(name)
			<-h.Context().Done()
			return h
		}
		h := lose("orders")
		time.Sleep(time.Minute)
		p := of(w, ask(w, asker, admin.Question{Pattern: "*"}), c.ID())
		if len(p.Held) != 0 || len(p.Lost) != 1 {
			t.Fatalf("%+v", p)
		}
		if x := p.Lost[0]; x.Name != "orders" || x.Kind != redlatch.KindLock || x.Owner != h.ID() || x.Reason != redlatch.LostGone ||
			x.For < time.Minute || x.For > 2*time.Minute || x.Site == "" || x.Evidence != admin.EvidenceNone || x.Renewed {
			t.Errorf("%+v", x)
		}
		if p := of(w, ask(w, asker, admin.Question{Names: []string{"else"}}), c.ID()); len(p.Lost) != 0 {
			t.Errorf("nobody has asked for it: %+v", p)
		}
		for i := range 20 {
			lose(fmt.Sprint("n", i))
		}
		p = of(w, ask(w, asker, admin.Question{}), c.ID())
		if len(p.Lost) != 16 || p.Lost[0].Name != "n19" || p.Lost[15].Name != "n4" {
			t.Errorf("%d: %+v", len(p.Lost), p.Lost)
		}
		if s := c.Stats(); s.Holds != 0 || s.Lost != 21 {
			t.Errorf("%+v", s)
		}
	})
}

// Whoever reads inside of what it writes was told of as a second writer, and so
// were all readers of its process that came when it only read any more.
func TestWhoReadsInsideOfAWriteIsToldOfAsAReader(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var lost []observe.LostEvent
		c := w.Client(redlatch.Config{}, observe.Hooks{Lost: func(e observe.LostEvent) { lost = append(lost, e) }})
		asker := w.Client(redlatch.Config{})
		modes := func(claims []admin.Claim) (modes []string) {
			for _, x := range claims {
				modes = append(modes, x.Mode)
			}
			slices.Sort(modes)
			return modes
		}
		rw := c.ReadWriteLock("orders")
		writer := w.Acquire(bg, rw.Write())
		inner := w.Acquire(writer.Context(), rw.Read())
		w.Settle() // whoever has just acquired for the first time may not listen yet
		if got := modes(of(w, ask(w, asker, admin.Question{}), c.ID()).Held); !slices.Equal(got, []string{"read", "write"}) {
			t.Errorf("held: %q", got)
		}
		w.Release(writer)
		beside := w.Acquire(bg, rw.Read())
		w.Server.Del("orders")
		time.Sleep(time.Minute) // the context of inner may have ended with writer's, before its loss is noticed
		<-inner.Context().Done()
		<-beside.Context().Done()
		if got := modes(of(w, ask(w, asker, admin.Question{}), c.ID()).Lost); !slices.Equal(got, []string{"read", "read"}) {
			t.Errorf("lost: %q", got)
		}
		w.Settle()
		for _, e := range lost {
			if e.Mode != "read" {
				t.Errorf("%+v", e)
			}
		}
		if len(lost) != 2 {
			t.Errorf("%d losses", len(lost))
		}
	})
}

// Who reads inside of what he writes, and stops too late, was counted twice among
// those who had stopped: then the client said that it had entered less than no
// times, which nobody believes, and neither hold nor loss was seen.
func TestAWriterIsToldOfWhateverReadsInside(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, asker := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		rw := c.ReadWriteLock("orders")
		owner := redlatch.WithOwner(bg)
		writer := w.Acquire(owner, rw.Write())
		var readers []*redlatch.Hold
		for range 2 {
			readers = append(readers, w.Acquire(owner, locktest.With(rw.Read(), redlatch.Lease(time.Second))))
		}
		time.Sleep(2 * time.Second)
		p := of(w, ask(w, asker, admin.Question{}), c.ID())
		if len(p.Held) != 1 || p.Held[0].Owner != writer.ID() || p.Held[0].Mode != "write" || p.Held[0].Count != 1 {
			t.Errorf("held: %+v", p.Held)
		}
		w.Server.Del("orders")
		<-writer.Context().Done()
		again := w.Acquire(bg, locktest.With(rw.Write(), redlatch.Lease(time.Second)))
		readers = append(readers, w.Acquire(again.Context(), locktest.With(rw.Read(), redlatch.Lease(time.Second))))
		time.Sleep(2 * time.Second)
		p = of(w, ask(w, asker, admin.Question{}), c.ID())
		var writes []admin.Claim
		for _, lost := range p.Lost {
			if lost.Mode == "write" {
				writes = append(writes, lost)
			}
		}
		if len(writes) != 2 || writes[0].Owner != again.ID() || writes[0].Count != 1 || writes[1].Owner != writer.ID() || writes[1].Count != 1 {
			t.Errorf("lost: %+v", p.Lost)
		}
		for _, h := range append(readers, writer, again) {
			_ = h.Release(bg)
		}
	})
}
