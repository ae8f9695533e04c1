package clients

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/wire"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

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
		p := ask(w, c, admin.Question{})
		if p.Ignored != 7+3 || len(p.Clients) != 2 {
			t.Errorf("%d ignored, %+v", p.Ignored, p.Clients)
		}
		x := of(w, p, liar)
		if x.Identity.Name != `\x1b]0;owned\a` || x.Identity.Labels[`\n`] != `\r` {
			t.Errorf("%+v", x.Identity)
		}
		if len(x.Held) != 1 || x.Held[0].Name != "a\x1b[2J" || x.Held[0].Kind != `lock\n` || x.Held[0].Evidence != admin.EvidenceNotStored {
			t.Errorf("%+v", x.Held)
		}
	})
}

// Whoever asks in vain learns why.
func TestQuestionsThatAreRefused(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		for _, q := range []admin.Question{
			{Pattern: strings.Repeat("x", 257)}, {Pattern: "\xff"}, {Names: make([]string, 65)}, {Owners: []string{strings.Repeat("x", 4<<10)}},
		} {
			if _, err := admin.New(c).Participants(bg, q); err == nil || !strings.Contains(err.Error(), "pattern") {
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
