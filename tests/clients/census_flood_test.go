package clients

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/census"
	"github.com/redlatch/redlatch/internal/claim"
	"github.com/redlatch/redlatch/internal/wire"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// Whoever may use locks may send what he likes.
func TestAFloodOfQuestionsIsAnsweredOnceASecond(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		asked := 0
		join(w.T, w.Driver(), "patient", func(*member) []claim.Claim { asked++; return nil })
		c := crowdOf(w, nil)
		synctest.Wait()
		for range 100 {
			for i := range 100 {
				w.Server.Publish(wire.Asked, fmt.Sprintf(`{"v":1,"key":"K%d","glob":"%d:*"}`, i, i))
				w.Server.Publish(wire.Asked, "nonsense")
			}
			time.Sleep(100 * time.Millisecond)
		}
		said := c.heard()
		if len(said) < 10 || len(said) > 11 || asked != len(said) {
			t.Errorf("%d answers in ten seconds, for which %d times everything was looked at", len(said), asked)
		}
		for _, text := range said {
			if n := len(fields(t, text)["for"].([]any)); n > 8 || len(text) > 16<<10 {
				t.Errorf("an answer for %d has %d bytes", n, len(text))
			}
		}
	})
}

// Those who ask at the same time hear one answer, and each what it has asked for.
func TestAskersShareAnAnswer(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		m := join(w.T, w.Driver(), "patient", func(m *member) []claim.Claim {
			return []claim.Claim{{Name: "a:1", Owner: m.owner(1)}, {Name: "b:1", Owner: m.owner(2)}}
		})
		askers := []*redlatch.Client{w.Client(redlatch.Config{}), w.Client(redlatch.Config{}), w.Client(redlatch.Config{})}
		eavesdropper := crowdOf(w, nil)
		synctest.Wait()
		var done []<-chan admin.Participants
		for i, pattern := range []string{"a:*", "b:*", "a:*"} {
			done = append(done, locktest.Later(func() admin.Participants {
				return ask(w, askers[i], admin.Question{Pattern: pattern, Spread: 500 * time.Millisecond})
			}))
		}
		for i, name := range []string{"a:1", "b:1", "a:1"} {
			if x := of(w, <-done[i], m.id); len(x.Held) != 1 || x.Held[0].Name != name {
				t.Errorf("%d hears %+v", i, x)
			}
		}
		by := map[string]int{}
		for _, text := range eavesdropper.heard() {
			by[fields(t, text)["client"].(string)]++
		}
		if by[m.id] != 1 || len(by) != 4 {
			t.Errorf("answers %v", by)
		}
	})
}

// Nor does an answer end or free anything, whatever it says.
func TestAThousandAnswersAtOnce(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		const liars = 1000
		var looked atomic.Int64 // several names are looked up at a time
		c := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(s string, args []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "client.ask" {
				args[2] = "1000" // as many as they are
				reply, err := next()
				reply.List[0].Int = liars + 1
				return reply, err
			}
			if s == "lock.info" {
				looked.Add(1)
			}
			return next()
		}})
		h := w.Acquire(bg, c.Lock("orders"))
		crowdOf(w, func(question string) (all []string) {
			key := keyOf(t, question)
			for i := range liars {
				id := wire.NewClientID()
				claim := `{"name":"orders","kind":"lock","owner":"` + id + `:1","ago":9000000000},` +
					fmt.Sprintf(`{"name":"%d","kind":"lock","owner":"%s:2","ago":%d}`, i, id, i)
				all = append(all, `{"v":1,"client":"`+id+`","for":["`+key+`"],"claims":[`+strings.Repeat(claim+",", 49)+claim+`]}`)
			}
			return all
		})
		synctest.Wait()
		p := ask(w, c, admin.Question{})
		if len(p.Clients) != liars+1 || p.Silent != 0 || p.Ignored != 0 {
			w.Fatalf("%d clients, %d are silent, %d ignored", len(p.Clients), p.Silent, p.Ignored)
		}
		if len(p.Objects) != 256 || looked.Load() != 256 {
			t.Errorf("%d objects, %d requests", len(p.Objects), looked.Load())
		}
		for _, x := range p.Clients {
			for _, held := range x.Held {
				if x.Client == c.ID() {
					if held.Evidence != admin.EvidenceStored || held.Owner != h.ID() {
						t.Errorf("the holder says %+v", held)
					}
					continue
				}
				if held.Name == "orders" && held.Evidence != admin.EvidenceNotStored || held.Evidence == admin.EvidenceStored {
					w.Fatalf("%+v", held)
				}
			}
		}
		w.OK(h.Err())
		w.Release(h)
	})
}

// What a refresh of a tool costs the server: one request of each client, and a few
// of the tool.
func TestARefreshCostsOneRequestOfEachClient(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		const clients, names = 100, 10
		sent := map[string]int{}
		tap := func() *locktest.Tap {
			return &locktest.Tap{Redis: w.Driver(), Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
				w.Server.Lock()
				sent[s]++
				w.Server.Unlock()
				return next()
			}}
		}
		for range clients {
			join(w.T, tap(), "one of many", func(m *member) (all []claim.Claim) {
				for i := range names {
					all = append(all, claim.Claim{Name: fmt.Sprint("orders:", i), Kind: "lock", Owner: m.owner(1), Since: time.Now()})
				}
				return all
			})
		}
		asker := join(w.T, tap(), "tool", nil)
		synctest.Wait()
		for round := range 2 {
			w.Server.Lock()
			clear(sent)
			w.Server.Unlock()
			ans, err := asker.Ask(bg, census.Question{})
			w.OK(err)
			if ans.Silent() != 0 || len(ans.All) != clients+1 || len(ans.Objects) != names {
				w.Fatalf("%d answers, %d are silent, %d objects", len(ans.All), ans.Silent(), len(ans.Objects))
			}
			synctest.Wait()
			w.Server.Lock()
			all := 0
			for _, n := range sent {
				all += n
			}
			// An answer of each; the question; of each name what is stored, and a barrier of
			// the name; who waits.
			if want := clients + 1 + 1 + 2*names + 1; all > want || sent["client.tell"] != clients+1 || sent["client.ask"] != 1 {
				t.Errorf("round %d: %d requests, want %d: %v", round, all, want, sent)
			}
			w.Server.Unlock()
			time.Sleep(2 * time.Second)
		}
	})
}

// Nobody knows how many there are, who may be a thousand.
func TestAnswersOfUnknownManyAreSpread(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		m := join(w.T, &locktest.Tap{Redis: w.Driver(), Hook: func(s string, args []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s != "client.ask" {
				return next()
			}
			args[2] = args[3] // as a server that refuses PUBSUB
			reply, err := next()
			reply.List[0].Int = -1
			return reply, err
		}}, "asker", nil)
		spread := make(chan any, 1)
		crowdOf(w, func(question string) []string {
			spread <- fields(w, question)["spread"]
			return nil
		})
		synctest.Wait()
		ans, err := m.Ask(bg, census.Question{})
		if got := <-spread; err != nil || ans.Silent() != -1 || got != 1000.0 {
			t.Errorf("%v ms, %d are silent, %v", got, ans.Silent(), err)
		}
	})
}

// A server that takes its time is not sent the next answer at once.
func TestAClientRestsAfterASlowAnswer(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var mu sync.Mutex
		var sent []time.Time
		join(w.T, &locktest.Tap{Redis: w.Driver(), Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "client.tell" {
				mu.Lock()
				sent = append(sent, time.Now())
				mu.Unlock()
				time.Sleep(2 * time.Second)
			}
			return next()
		}}, "slow", nil)
		synctest.Wait()
		w.Server.Publish(wire.Asked, `{"v":1,"key":"K1"}`)
		time.Sleep(time.Second)
		w.Server.Publish(wire.Asked, `{"v":1,"key":"K2"}`)
		time.Sleep(10 * time.Second)
		mu.Lock()
		defer mu.Unlock()
		if len(sent) != 2 || sent[1].Sub(sent[0]) < 3*time.Second {
			t.Errorf("answers at %v", sent)
		}
	})
}
