package census

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// Who asks what happened to a lock is told by the client that has lost it, and nobody takes that for a hold.
func TestLossesAreTold(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, asker := w.Client(redlatch.Config{Identity: billing, TellSites: true}), w.Client(redlatch.Config{})
		lose := func(name string) *redlatch.Hold {
			h := w.Acquire(bg, c.Lock(name))
			w.Server.Del(name)
			<-h.Context().Done()
			return h
		}
		h := lose("orders")
		time.Sleep(time.Minute)
		p := of(w, ask(w, asker, redlatch.Question{Pattern: "*"}), c.ID())
		if len(p.Held) != 0 || len(p.Lost) != 1 {
			t.Fatalf("%+v", p)
		}
		if x := p.Lost[0]; x.Name != "orders" || x.Kind != redlatch.KindLock || x.Owner != h.Owner() || x.Reason != redlatch.LostGone ||
			x.For < time.Minute || x.For > 2*time.Minute || x.Site == "" || x.Evidence != redlatch.EvidenceNone || x.Renewed {
			t.Errorf("%+v", x)
		}
		if p := of(w, ask(w, asker, redlatch.Question{Names: []string{"else"}}), c.ID()); len(p.Lost) != 0 {
			t.Errorf("nobody has asked for it: %+v", p)
		}
		for i := range 20 {
			lose(fmt.Sprint("n", i))
		}
		p = of(w, ask(w, asker, redlatch.Question{}), c.ID())
		if len(p.Lost) != 16 || p.Lost[0].Name != "n19" || p.Lost[15].Name != "n4" {
			t.Errorf("%d: %+v", len(p.Lost), p.Lost)
		}
		if s := c.Stats(); s.Holds != 0 || s.Lost != 21 {
			t.Errorf("%+v", s)
		}
	})
}

// Whoever reads inside of what it writes was told of as a second writer, and so were all readers of its process that
// came when it only read any more.
func TestWhoReadsInsideOfAWriteIsToldOfAsAReader(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var lost []redlatch.LostEvent
		c := w.Client(redlatch.Config{Events: redlatch.Events{Lost: func(e redlatch.LostEvent) { lost = append(lost, e) }}})
		asker := w.Client(redlatch.Config{})
		modes := func(claims []redlatch.Claim) (modes []string) {
			for _, x := range claims {
				modes = append(modes, x.Mode)
			}
			slices.Sort(modes)
			return modes
		}
		rw := c.ReadWriteLock("orders")
		writer := w.Acquire(bg, rw.Write())
		inner := w.Acquire(writer.Context(), rw.Read())
		if got := modes(of(w, ask(w, asker, redlatch.Question{}), c.ID()).Held); !slices.Equal(got, []string{"read", "write"}) {
			t.Errorf("held: %q", got)
		}
		w.Release(writer)
		beside := w.Acquire(bg, rw.Read())
		w.Server.Del("orders")
		<-inner.Context().Done()
		<-beside.Context().Done()
		if got := modes(of(w, ask(w, asker, redlatch.Question{}), c.ID()).Lost); !slices.Equal(got, []string{"read", "read"}) {
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
