package census

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/claim"
	"github.com/redlatch/redlatch/internal/request"
)

// Equal questions are one for who answers, and each asker finds its own key in the
// answer.
func TestEqualQuestionsHaveEachTheirKeyInTheAnswer(t *testing.T) {
	a := &answerer{}
	defer a.stop()
	for i := range 3 * mostKeys {
		a.add(question{V: version, Key: fmt.Sprint("K", i/2), filter: filter{Glob: "a*"}, Spread: mostSpread.Milliseconds()})
	}
	if len(a.asked) != 1 || len(a.keys) != mostKeys || a.keys[0] != "K0" || a.keys[mostKeys-1] != fmt.Sprint("K", mostKeys-1) {
		t.Errorf("%v, %q", a.asked, a.keys)
	}
}

func TestOneAnswerIsForFewFilters(t *testing.T) {
	a := &answerer{}
	defer a.stop()
	for i := range 3 * mostAsked {
		a.add(question{V: version, Key: fmt.Sprint("K", i), filter: filter{Names: []string{fmt.Sprint(i)}}, Spread: mostSpread.Milliseconds()})
	}
	if len(a.asked) != mostAsked || len(a.keys) != mostAsked {
		t.Errorf("%v, %q", a.asked, a.keys)
	}
}

// quiet is a driver of which nobody wants anything.
type quiet struct{ driver.Redis }

// The contexts of callers are users' code: only those are asked whose claims are
// told.
func TestOnlyContextsOfClaimsThatAreToldAreAsked(t *testing.T) {
	const waiters = 5000
	asked, start := 0, time.Now()
	a := &answerer{
		server: &request.Server{Options: request.Options{Driver: quiet{}}}, id: uuid,
		claims: func(yield func(claim.Claim, context.Context) bool) {
			for i := range waiters {
				name := []string{"orders", "else"}[i%2]
				if !yield(claim.Claim{Name: name, Waits: true, Since: start}, context.Background()) {
					return
				}
			}
		},
		above: func(context.Context) []string { asked++; return []string{uuid + ":1"} },
	}
	text := a.compose([]filter{{Names: []string{"orders"}}}, []string{"K"})
	told := strings.Count(text, `"under"`)
	if told == 0 || asked < told || asked > mostKept {
		t.Errorf("%d contexts are asked for %d claims", asked, told)
	}
	if len(text) > mostAnswer {
		t.Errorf("the answer has %d bytes", len(text))
	}
}

// All callers of a client share a subscription, and so do clients that share a
// driver.
func TestWaitersOfAClientAreOneSubscriber(t *testing.T) {
	wait := []Claim{{Name: "a", Waits: true}, {Name: "a", Waits: true}, {Name: "a", Waits: true}, {Name: "b"}}
	ans := &Answers{All: []Answer{{Claims: wait, weight: 1}, {Claims: wait, weight: 0.5}, {Claims: wait, weight: 0.5}, {Claims: wait[:0], weight: 1}}}
	if got := ans.listening(); got["a"] != 2 || got["b"] != 0 {
		t.Errorf("%v", got)
	}
}

func TestKeysOfQuestions(t *testing.T) {
	for _, key := range []string{"K", "0aZ9", strings.Repeat("K", mostKey)} {
		if !isKey(key) {
			t.Errorf("%q is refused", key)
		}
	}
	if bad := slices.DeleteFunc([]string{"", "a b", "é", "\x00", `"`, strings.Repeat("K", mostKey+1)}, func(k string) bool { return !isKey(k) }); len(bad) > 0 {
		t.Errorf("%q are taken", bad)
	}
}

// A name that no claim could tell is compared with no pattern.
func TestNoPatternIsTriedOnALongName(t *testing.T) {
	f := filter{Glob: "x*"}
	if !f.fits(strings.Repeat("x", mostClaim), "") || f.fits(strings.Repeat("x", mostClaim+1), "") {
		t.Error("it is")
	}
}
