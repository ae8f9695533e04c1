package census

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/redlatch/redlatch/internal/claim"
)

const uuid = "2628bb85-29a0-8bdd-8b35-e7415bb697b1"

// What one client tells of a claim another one reads, whatever the clocks of both
// say.
func TestAClaimIsTheSameAtBothEnds(t *testing.T) {
	now := time.Now()
	for _, name := range []string{"orders", "a\x1b[2J\u202e", "\xff\xfe", "{a}b"} {
		in := claim.Claim{
			Name: name, Kind: "lock", Mode: "write", Owner: uuid + ":7", Since: now.Add(-time.Minute), Until: now.Add(time.Second),
			Renewed: true, Token: 1 << 60, Count: 3, Note: "row 4 of 9", Waits: true, Under: []string{uuid + ":8"},
		}
		text := tell(&in, now, true)
		got, ok := read(text, uuid)
		want := Claim{
			Name: name, Kind: "lock", Mode: "write", Owner: uuid + ":7", For: time.Minute, Left: time.Second,
			Renewed: true, Token: 1 << 60, Count: 3, Note: "row 4 of 9", Waits: true, Under: []string{uuid + ":8"},
		}
		if !ok || !reflect.DeepEqual(got, want) {
			t.Errorf("%s is read as %+v, %v", text, got, ok)
		}
	}
}

// A hold was not told of at all because of its note, which takes up to six times
// as much room as JSON.
func TestANoteHidesNoHold(t *testing.T) {
	in := claim.Claim{Name: strings.Repeat("long", 400), Kind: "lock", Owner: uuid + ":7", Note: strings.Repeat("\x01", claim.MostNote)}
	got, ok := read(tell(&in, time.Now(), false), uuid)
	if !ok || got.Name != in.Name || got.Note != "" {
		t.Errorf("%+v, %v", got, ok)
	}
	in.Name = "short"
	if got, ok := read(tell(&in, time.Now(), false), uuid); !ok || got.Note != strings.Repeat(`\x01`, claim.MostNote) {
		t.Errorf("%+v, %v", got, ok)
	}
}

func TestClaimsThatMakeNoSense(t *testing.T) {
	for _, text := range []string{
		``, `7`, `[]`, `{"ago":1}`, `{"name":"x","ago":-1}`, `{"name":"x","ago":1e300}`, `{"name":"x","count":-1}`, `{"name":7}`,
		`{"name":"x","owner":"00000000-29a0-8bdd-8b35-e7415bb697b1:1"}`, `{"name":"x","under":["1","2","3","4","5","6","7","8","9"]}`,
		`{"name":"` + strings.Repeat("x", mostClaim) + `"}`,
	} {
		if c, ok := read(json.RawMessage(text), uuid); ok {
			t.Errorf("%.100s is read as %+v", text, c)
		}
	}
}

// Whatever others send, it is read or refused, and what is shown of it can be
// shown.
func FuzzMessages(f *testing.F) {
	f.Fuzz(func(t *testing.T, text string) {
		if q, ok := readQuestion(text); ok && (q.Spread < 0 || q.Spread > mostSpread.Milliseconds() || len(q.Glob) > mostGlob || len(q.Names)+len(q.Owners) > mostExact) {
			t.Errorf("question %+v", q)
		}
		if who, ok := readIdentity(text); ok {
			printable(t, who)
		}
		answers := Answers{Expected: 1}
		all := filter{}
		answers.add(text, "K", &all, map[string]bool{})
		for _, x := range answers.All {
			printable(t, x.Identity)
			for _, c := range x.Claims {
				if c.Name == "" || c.For < 0 || c.Left < -1 || c.Count < 0 || len(c.Under) > mostUnder || strings.ContainsFunc(c.Kind+c.Mode+c.Site, unicode.IsControl) {
					t.Errorf("claim %+v", c)
				}
			}
		}
		if n := answers.Silent(); n < 0 || n > 1 {
			t.Errorf("%d are silent", n)
		}
	})
}

func printable(t *testing.T, who Identity) {
	t.Helper()
	texts := []string{who.String(), who.Name, who.Program, who.Host}
	for label, value := range who.Labels {
		texts = append(texts, label, value)
	}
	for _, text := range texts {
		if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) || len(text) > 2000 {
			t.Errorf("%q", text)
		}
	}
	if len(who.Labels) > mostLabels {
		t.Errorf("%d labels", len(who.Labels))
	}
}

func TestIdentitiesThatAreRefused(t *testing.T) {
	many := map[string]string{}
	for _, r := range "abcdefghijklmnopq" {
		many[string(r)] = ""
	}
	for name, who := range map[string]Identity{
		"a control character": {Name: "a\x1b[2J"}, "no text": {Host: "\xff"}, "long": {Program: strings.Repeat("x", mostText+1)},
		"of a label": {Labels: map[string]string{"a\nb": ""}}, "of its value": {Labels: map[string]string{"a": "\u202e"}}, "many labels": {Labels: many},
	} {
		if _, err := who.WithDefaults(); err == nil || strings.ContainsFunc(err.Error(), unicode.IsControl) || len(err.Error()) > 300 {
			t.Errorf("%s: %v", name, err)
		}
	}
	who, err := Identity{Name: "billing", Labels: map[string]string{"team": "blue"}}.WithDefaults()
	if err != nil || who.Program == "" || who.PID == 0 || !strings.HasPrefix(who.String(), "billing@") || !strings.Contains(who.String(), " pid ") {
		t.Errorf("%+v, %v", who, err)
	}
	printable(t, who)
}

func TestWhatIsWorstComesFirst(t *testing.T) {
	var o oldest
	start := time.Now()
	for i := range 5000 {
		o.add(kept{Claim: claim.Claim{Since: start.Add(time.Duration(i*7919%5000) * time.Second)}})
	}
	got := o.cut()
	if o.n != 5000 || len(got) != mostKept {
		t.Fatalf("%d of %d", len(got), o.n)
	}
	for i, c := range got {
		if !c.Since.Equal(start.Add(time.Duration(i) * time.Second)) {
			t.Fatalf("%d is %v", i, c.Since.Sub(start))
		}
	}
	if all := inTurn([]int{1, 3}, []int{2, 4, 5}); !slices.Equal(all, []int{1, 2, 3, 4, 5}) {
		t.Error(all)
	}
}

// What New accepts others can read.
func TestAnIdentityThatNobodyCouldReadIsRefused(t *testing.T) {
	labels := func(r string) map[string]string {
		all := map[string]string{}
		for i := range mostLabels {
			all[strings.Repeat(r, mostText-1)+string(rune('a'+i))] = strings.Repeat(r, mostText)
		}
		return all
	}
	who, err := Identity{Labels: labels("x")}.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := readIdentity(who.note()); !ok {
		t.Error("what was accepted cannot be read")
	}
	if _, err := (Identity{Labels: labels("&")}).WithDefaults(); err == nil || !strings.Contains(err.Error(), "shorten") {
		t.Errorf("%v", err)
	}
}
