package clients

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/claim"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// A request that is on its way alone costs the server several times as much, and
// the asker a round trip.
func TestNamesAreLookedUpAFewAtATime(t *testing.T) {
	const names, most = 300, 32
	locktest.InFakeTime(t, func(w *locktest.World) {
		var mu sync.Mutex
		under, highest, asked := 0, 0, 0
		count := func(n int) int {
			mu.Lock()
			defer mu.Unlock()
			if under += n; n > 0 {
				asked++
			}
			highest = max(highest, under)
			return asked
		}
		ctx, cancel := context.WithCancel(bg)
		end := 0 // with so many
		c := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "lock.info" {
				if n := count(1); n == end {
					cancel()
				}
				time.Sleep(time.Millisecond)
				defer count(-1)
			}
			return next()
		}})
		holder := join(w.T, w.Driver(), "holder", func(m *member) (all []claim.Claim) {
			for i := range names {
				all = append(all, claim.Claim{Name: fmt.Sprintf("%03d", i), Kind: "lock", Owner: m.owner(1), Since: time.Now()})
			}
			return all
		})
		for i := range names {
			store(w, fmt.Sprintf("%03d", i), holder.owner(1))
		}
		synctest.Wait() // until the holder listens
		p := ask(w, c, admin.Question{})
		n := len(p.Objects)
		if n == 0 || asked != n || highest != min(most, n) {
			t.Errorf("%d names were looked up, %d are told, %d at a time at most", asked, n, highest)
		}
		for i, o := range p.Objects {
			if want := fmt.Sprintf("%03d", i); o.Name != want {
				t.Fatalf("name %d is %s, want %s: they are in no order", i, o.Name, want)
			}
		}

		time.Sleep(time.Second)
		asked, end = 0, most+8 // of the second lot
		p, err := admin.New(c).Participants(ctx, admin.Question{})
		if !errors.Is(err, context.Canceled) || len(p.Objects) == 0 || len(p.Objects) >= n || len(p.Clients) != 2 {
			t.Errorf("%v with %d objects of %d", err, len(p.Objects), n)
		}
	})
}
