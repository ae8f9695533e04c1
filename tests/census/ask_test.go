package census

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/census"
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
func ask(w *locktest.World, c *redlatch.Client, q redlatch.Question) redlatch.Participants {
	w.Helper()
	p, err := c.Participants(bg, q)
	w.OK(err)
	return p
}

// of returns what is said of a client.
func of(w *locktest.World, p redlatch.Participants, id string) redlatch.Participant {
	w.Helper()
	for _, x := range p.Clients {
		if x.Client == id {
			return x
		}
	}
	w.Fatalf("%s is not among %+v", id, p.Clients)
	return redlatch.Participant{}
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

		p := ask(w, c, redlatch.Question{Pattern: "orders:*", Names: []string{"orders:java"}})
		if p.Silent != 0 || p.Ignored != 0 || len(p.Clients) != 4 {
			t.Errorf("%d are silent, %d ignored: %+v", p.Silent, p.Ignored, p.Clients)
		}
		if got := of(w, p, c.ID()); got.Identity.String() != billing.String() || !got.Answered || !got.Redlatch {
			t.Errorf("the asker is %+v", got)
		}
		held := map[string]redlatch.Claim{}
		for _, x := range of(w, p, holder.id).Held {
			held[x.Name] = x
		}
		if x := held["orders:1"]; len(held) != 3 || x.Evidence != redlatch.EvidenceStored || x.For < 10*time.Second || x.For > 11*time.Second ||
			x.Left < 19*time.Second || !x.Renewed || x.Token != 7 || x.Count != 2 {
			t.Errorf("%+v", held)
		}
		if x := held["orders:gone"]; x.Evidence != redlatch.EvidenceNotStored || x.Left != -1 {
			t.Errorf("%+v", x)
		}
		if x := held["orders:permits"]; x.Evidence != redlatch.EvidenceNone {
			t.Errorf("%+v", x)
		}
		if got := of(w, p, waiter.id); len(got.Held) != 0 || len(got.Waiting) != 1 || got.Waiting[0].Evidence != redlatch.EvidenceNone || got.Waiting[0].Under[0] != waiter.owner(9) {
			t.Errorf("%+v", got)
		}
		if got := of(w, p, locktest.JavaA); got.Redlatch || got.Answered || len(got.Held) != 1 || got.Held[0].Name != "orders:java" || got.Held[0].Evidence != redlatch.EvidenceStored {
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
		p := ask(w, c, redlatch.Question{Names: []string{"orders"}})
		if p.Others["orders"] != 3 {
			t.Errorf("%v", p.Others)
		}
		w.Release(h)
	})
}

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
		p := ask(w, c, redlatch.Question{Names: []string{"orders"}})
		if took := time.Since(start); took < 1500*time.Millisecond || took > 2*time.Second {
			t.Errorf("it took %v", took)
		}
		if p.Silent != 1 {
			t.Errorf("%d are silent", p.Silent)
		}
		if x := of(w, p, silent.ID()); x.Answered || !x.Redlatch || x.Identity.String() != billing.String() || len(x.Held) != 1 || x.Held[0].Owner != h.Owner() {
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
		p, err := c.Participants(ctx, redlatch.Question{})
		if !errors.Is(err, context.DeadlineExceeded) || len(p.Clients) != 1 || p.Silent != 1 {
			t.Errorf("%+v, %v", p, err)
		}
		w.OK(c.Close())
		if _, err := c.Participants(bg, redlatch.Question{}); !errors.Is(err, redlatch.ErrClosed) {
			t.Error(err)
		}
		if n := d.Subs.Load(); n != 0 {
			t.Errorf("%d subscriptions are left", n)
		}
	})
}

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
		var done []<-chan redlatch.Participants
		for i, pattern := range []string{"a:*", "b:*", "a:*"} {
			done = append(done, locktest.Later(func() redlatch.Participants {
				return ask(w, askers[i], redlatch.Question{Pattern: pattern, Spread: 500 * time.Millisecond})
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

func TestNonsenseIsNotAnswered(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		join(w.T, w.Driver(), "patient", nil)
		c := crowdOf(w, nil)
		synctest.Wait()
		for _, text := range []string{
			"", "nonsense", "7", "[]", "null", `{"v":2,"key":"K"}`, `{"v":"1","key":"K"}`, `{"v":1,"key":"K","glob":7}`, `{"v":1,"key":"K","names":"x"}`,
			`{"v":1}`, `{"v":1,"key":""}`, `{"v":1,"key":"a b"}`, `{"v":1,"key":"` + strings.Repeat("K", 33) + `"}`,
			`{"v":1,"key":"K","glob":"` + strings.Repeat("*", 257) + `"}`, `{"v":1,"key":"K","x":"` + strings.Repeat("x", 4<<10) + `"}`,
			`{"v":1,"key":"K","names":["a"` + strings.Repeat(`,"a"`, 64) + `]}`, strings.Repeat("[", 4000),
		} {
			w.Server.Publish(wire.Asked, text)
			time.Sleep(2 * time.Second)
			if said := c.heard(); len(said) > 0 {
				t.Errorf("%.50s is answered by %s", text, said)
			}
		}
		w.Server.Publish(wire.Asked, `{"v":1,"key":"K","spread":-7,"later":{"unknown":[1]}}`)
		if said := c.heard(); len(said) != 1 {
			t.Errorf("a question of a later version gets %s", said)
		}
	})
}

// keyOf returns the key of a question.
func keyOf(t *testing.T, question string) string {
	t.Helper()
	key, _ := fields(t, question)["key"].(string)
	if key == "" {
		t.Fatalf("%s has no key", question)
	}
	return key
}

func TestNonsenseAnswersAreCounted(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		liar, victim := wire.NewClientID(), wire.NewClientID()
		crowdOf(w, func(question string) []string {
			key := keyOf(t, question)
			return []string{
				"nonsense", `{"v":2}`, `[]`, `{"v":1,"client":"x","for":["` + key + `"]}`,
				`{"v":1,"client":"` + locktest.JavaA + `","for":["` + key + `"]}`,
				`{"v":1,"client":"` + liar + `","for":["` + key + `"],"left":-1}`,
				`{"v":1,"client":"` + liar + `","pad":"` + strings.Repeat("x", 16<<10) + `"}`,
				`{"v":1,"client":"` + liar + `","for":["another question"]}`,
				`{"v":1,"client":"` + liar + `","for":["` + key + `"],"identity":{"name":"\u001b]0;owned\u0007","labels":{"\n":"\r"}},"claims":[` +
					`7,{"name":7},{"name":"x","owner":"` + victim + `:1","ago":1},{"name":"a\u001b[2J","owner":"` + liar + `:1","kind":"lock\n","ago":5}]}`,
				`{"v":1,"client":"` + liar + `","for":["` + key + `"],"claims":[{"name":"again","ago":1}]}`,
			}
		})
		synctest.Wait()
		p := ask(w, c, redlatch.Question{})
		if p.Ignored != 7+3 || len(p.Clients) != 2 {
			t.Errorf("%d ignored, %+v", p.Ignored, p.Clients)
		}
		x := of(w, p, liar)
		if x.Identity.Name != `\x1b]0;owned\a` || x.Identity.Labels[`\n`] != `\r` {
			t.Errorf("%+v", x.Identity)
		}
		if len(x.Held) != 1 || x.Held[0].Name != "a\x1b[2J" || x.Held[0].Kind != `lock\n` || x.Held[0].Evidence != redlatch.EvidenceNotStored {
			t.Errorf("%+v", x.Held)
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
		p := ask(w, c, redlatch.Question{})
		if len(p.Clients) != liars+1 || p.Silent != 0 || p.Ignored != 0 {
			w.Fatalf("%d clients, %d are silent, %d ignored", len(p.Clients), p.Silent, p.Ignored)
		}
		if len(p.Objects) != 256 || looked.Load() != 256 {
			t.Errorf("%d objects, %d requests", len(p.Objects), looked.Load())
		}
		for _, x := range p.Clients {
			for _, held := range x.Held {
				if x.Client == c.ID() {
					if held.Evidence != redlatch.EvidenceStored || held.Owner != h.Owner() {
						t.Errorf("the holder says %+v", held)
					}
					continue
				}
				if held.Name == "orders" && held.Evidence != redlatch.EvidenceNotStored || held.Evidence == redlatch.EvidenceStored {
					w.Fatalf("%+v", held)
				}
			}
		}
		w.OK(h.Err())
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

// An operator needs the lock that has been stuck for an hour, and not the one that was taken just now.
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
		x := of(w, ask(w, asker, redlatch.Question{}), m.id)
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

// What a refresh of a tool costs the server: one request of each client, and a few of the tool.
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
			// An answer of each; the question; of each name what is stored, and a barrier of the name; who waits.
			if want := clients + 1 + 1 + 2*names + 1; all > want || sent["client.tell"] != clients+1 || sent["client.ask"] != 1 {
				t.Errorf("round %d: %d requests, want %d: %v", round, all, want, sent)
			}
			w.Server.Unlock()
			time.Sleep(2 * time.Second)
		}
	})
}

// Whoever asks in vain learns why.
func TestQuestionsThatAreRefused(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		for _, q := range []redlatch.Question{
			{Pattern: strings.Repeat("x", 257)}, {Pattern: "\xff"}, {Names: make([]string, 65)}, {Owners: []string{strings.Repeat("x", 4<<10)}},
		} {
			if _, err := c.Participants(bg, q); err == nil || !strings.Contains(err.Error(), "pattern") {
				t.Errorf("%.50v: %v", q, err)
			}
		}
		for _, who := range []redlatch.Identity{{Name: "a\nb"}, {Host: strings.Repeat("x", 101)}} {
			if _, err := redlatch.New(w.Driver(), redlatch.Config{Identity: who}); err == nil || !strings.Contains(err.Error(), "Config.Identity") {
				t.Error(err)
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
		if p := ask(w, c, redlatch.Question{Names: []string{"orders"}}); p.Others["orders"] != 3 {
			t.Errorf("%v", p.Others)
		}
	})
}

// mute is a driver whose subscriptions are never confirmed.
type mute struct{ driver.Redis }

func (mute) Subscribe(string, bool, func(driver.Notice)) func() { return func() {} }

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

// Between a count of those who listen and the question, somebody may come or go. The question itself is counted.
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
				if p := ask(w, c, redlatch.Question{}); p.Silent != x.silent {
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
		if p := ask(w, c, redlatch.Question{}); p.Silent != 0 || len(p.Clients) != 1 {
			t.Errorf("%d are silent: %+v", p.Silent, p.Clients)
		}
	})
}
