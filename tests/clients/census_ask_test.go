package clients

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/claim"
	"github.com/redlatch/redlatch/internal/wire"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// store makes a lock as one owner has it.
func store(w *locktest.World, name, owner string) {
	w.Server.HSet(name, owner, "1")
	w.Server.SetTTL(name, time.Minute)
}

// ask asks, or ends the test.
func ask(w *locktest.World, c *redlatch.Client, q admin.Question) admin.Participants {
	w.Helper()
	p, err := admin.New(c).Participants(bg, q)
	w.OK(err)
	return p
}

// of returns what is said of a client.
func of(w *locktest.World, p admin.Participants, id string) admin.Participant {
	w.Helper()
	for _, x := range p.Clients {
		if x.Client == id {
			return x
		}
	}
	w.Fatalf("%s is not among %+v", id, p.Clients)
	return admin.Participant{}
}

func TestAllAreAskedWhatTheyHoldAndWaitFor(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{Identity: billing})
		start := time.Now()
		holder := join(w.T, w.Driver(), "holder", func(m *member) []claim.Claim {
			return []claim.Claim{
				{Name: "orders:1", Kind: "lock", Owner: m.owner(1), Since: start, Until: time.Now().Add(20 * time.Second), Renewed: true, Token: 7, Count: 2},
				{Name: "orders:gone", Kind: "lock", Owner: m.owner(2), Since: start},
				{Name: "else", Kind: "lock", Owner: m.owner(3), Since: start},
				{Name: "orders:permits", Kind: "semaphore", Count: 3, Since: start},
			}
		})
		waiter := join(w.T, w.Driver(), "waiter", func(m *member) []claim.Claim {
			return []claim.Claim{{Name: "orders:1", Kind: "lock", Waits: true, Since: start, Under: []string{m.owner(9)}}}
		})
		store(w, "orders:1", holder.owner(1))
		store(w, "orders:java", locktest.JavaA+":42")
		time.Sleep(10 * time.Second)

		p := ask(w, c, admin.Question{Pattern: "orders:*", Names: []string{"orders:java"}})
		if p.Silent != 0 || p.Ignored != 0 || len(p.Clients) != 4 {
			t.Errorf("%d are silent, %d ignored: %+v", p.Silent, p.Ignored, p.Clients)
		}
		if got := of(w, p, c.ID()); got.Identity.String() != billing.String() || !got.Answered || !got.Redlatch {
			t.Errorf("the asker is %+v", got)
		}
		held := map[string]admin.Claim{}
		for _, x := range of(w, p, holder.id).Held {
			held[x.Name] = x
		}
		if x := held["orders:1"]; len(held) != 3 || x.Evidence != admin.EvidenceStored || x.For < 10*time.Second || x.For > 11*time.Second ||
			x.Left < 19*time.Second || !x.Renewed || x.Token != 7 || x.Count != 2 {
			t.Errorf("%+v", held)
		}
		if x := held["orders:gone"]; x.Evidence != admin.EvidenceNotStored || x.Left != -1 {
			t.Errorf("%+v", x)
		}
		if x := held["orders:permits"]; x.Evidence != admin.EvidenceNone {
			t.Errorf("%+v", x)
		}
		if got := of(w, p, waiter.id); len(got.Held) != 0 || len(got.Waiting) != 1 || got.Waiting[0].Evidence != admin.EvidenceNone || got.Waiting[0].Under[0] != waiter.owner(9) {
			t.Errorf("%+v", got)
		}
		if got := of(w, p, locktest.JavaA); got.Redlatch || got.Answered || len(got.Held) != 1 || got.Held[0].Name != "orders:java" || got.Held[0].Evidence != admin.EvidenceStored {
			t.Errorf("%+v", got)
		}
	})
}

// They cannot be asked, and hear a channel.
func TestWaitersOfRedissonAreANumber(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, other := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		h := w.Acquire(bg, other.Lock("orders"))
		for range 3 {
			w.Listen(nil, "redisson_lock__channel:{orders}")
		}
		p := ask(w, c, admin.Question{Names: []string{"orders"}})
		if p.Others["orders"] != 3 {
			t.Errorf("%v", p.Others)
		}
		w.Release(h)
	})
}

// Clocks differ, so no message has a time.
func TestNoMessageHasATime(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		join(w.T, w.Driver(), "patient", func(m *member) []claim.Claim {
			now := time.Now()
			return []claim.Claim{{Name: "orders", Owner: m.owner(1), Since: now.Add(-time.Minute), Until: now.Add(time.Minute)}, {Name: "future", Since: now.Add(time.Hour), Until: now.Add(-time.Hour)}}
		})
		c := crowdOf(w, nil)
		synctest.Wait()
		w.Server.Publish(wire.Asked, `{"v":1,"key":"K"}`)
		said := c.heard()
		if len(said) != 1 {
			w.Fatal(said)
		}
		for _, claim := range fields(t, said[0])["claims"].([]any) {
			for field, value := range claim.(map[string]any) {
				if n, ok := value.(float64); ok && (n < 0 || n > 60_000) {
					t.Errorf("%s is %v", field, value)
				}
			}
		}
	})
}

// An operator needs the lock that has been stuck for an hour, and not the one that
// was taken just now.
func TestALongAnswerIsCutAtItsEnd(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		const holds = 20_000
		m := join(w.T, w.Driver(), "busy", func(m *member) (all []claim.Claim) {
			now := time.Now()
			for i := range holds {
				all = append(all, claim.Claim{Name: fmt.Sprint("orders:", i), Owner: m.owner(uint64(i)), Since: now.Add(-time.Duration(i*7919%holds) * time.Second)})
			}
			return append(all, claim.Claim{Name: strings.Repeat("x", 1<<20), Since: now.Add(-1000 * time.Hour)}, claim.Claim{Name: "slow", Waits: true, Since: now.Add(-time.Second)})
		})
		c := crowdOf(w, nil)
		asker := w.Client(redlatch.Config{})
		synctest.Wait()
		x := of(w, ask(w, asker, admin.Question{}), m.id)
		for _, text := range c.heard() {
			if len(text) > 16<<10 || fields(t, text)["client"] == m.id && len(text) < 15<<10 {
				t.Errorf("an answer has %d bytes", len(text))
			}
		}
		if len(x.Waiting) != 1 || len(x.Held) < 50 || x.Omitted != holds+2-1-len(x.Held) {
			t.Errorf("%d are told, %d waits, and %d left out", len(x.Held), len(x.Waiting), x.Omitted)
		}
		for i, held := range x.Held {
			if want := time.Duration(holds-1-i) * time.Second; held.For != want {
				w.Fatalf("%d is %v old, want %v", i, held.For, want)
			}
		}
	})
}

// However many callers of a client wait, they listen once.
func TestWaitersOfRedlatchAreNotOthers(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		for range 3 {
			w.Listen(nil, "redisson_lock__channel:{orders}")
		}
		join(w.T, w.Driver(), "waiter", func(*member) (all []claim.Claim) {
			for range 5 {
				all = append(all, claim.Claim{Name: "orders", Kind: "lock", Waits: true, Since: time.Now()})
			}
			return all
		})
		w.Listen(nil, "redisson_lock__channel:{orders}") // the waiter
		synctest.Wait()
		if p := ask(w, c, admin.Question{Names: []string{"orders"}}); p.Others["orders"] != 3 {
			t.Errorf("%v", p.Others)
		}
	})
}

// A client that had to wait for a lock goes on listening while it holds it. It was
// counted as a waiter that says nothing.
func TestAHolderThatHadToWaitIsNoWaiter(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		first := w.Acquire(bg, w.Client(redlatch.Config{}).Lock("orders"))
		next := locktest.Acquiring(w.Client(redlatch.Config{}).Lock("orders"))
		synctest.Wait()
		w.Release(first)
		w.OK((<-next).Err)
		others := func(want int) {
			synctest.Wait()
			if p := ask(w, c, admin.Question{Names: []string{"orders"}}); p.Others["orders"] != want {
				t.Errorf("%d others listen, want %d", p.Others["orders"], want)
			}
		}
		others(0)
		w.Listen(nil, "redisson_lock__channel:{orders}")
		others(1)
	})
}

func (mute) Subscribe(string, bool, func(driver.Notice)) func() { return func() {} }
