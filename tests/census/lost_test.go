package census

import (
	"fmt"
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
