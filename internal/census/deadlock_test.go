package census

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/inspect"
)

// answersOf reads "a: x>y" as: the client a waits for y under its hold of x; "x=1"
// as: 1 has x.
func answersOf(at time.Duration, text string) *Answers {
	answers := &Answers{At: time.Time{}.Add(at)}
	holders, clients := map[string]string{}, map[string][]Claim{}
	mode := map[string]string{}
	for word := range strings.FieldsSeq(text) {
		if name, holder, ok := strings.Cut(word, "="); ok {
			if name, ok = strings.CutSuffix(name, "r"); ok {
				mode[name] = "read"
			}
			holders[name] = holder
			continue
		}
		under, name, _ := strings.Cut(word, ">")
		c := Claim{Waits: true, Under: []string{under}}
		if name, ok := strings.CutSuffix(name, "r"); ok {
			c.Mode, c.Name = "read", name
		} else {
			c.Name = name
		}
		clients["client "+under] = append(clients["client "+under], c)
	}
	for client, claims := range clients {
		answers.All = append(answers.All, Answer{Client: client, Answered: true, Claims: claims})
	}
	for name, holder := range holders {
		info := inspect.Info{Name: name}
		for owner := range strings.SplitSeq(holder, ",") {
			info.Holders = append(info.Holders, inspect.Holder{Owner: owner, Mode: mode[name]})
		}
		answers.Objects = append(answers.Objects, Object{Info: info})
	}
	return answers
}

func waitsOf(at time.Duration, text string) Waits {
	answers := answersOf(at, text)
	answers.findWaits()
	return answers.Waits
}

// A circle is told once while it stands, and again if it comes back.
func TestAPossibleDeadlockIsToldOnce(t *testing.T) {
	const two = "x=1 y=2 1>y 2>x"
	var k Census
	for i, step := range []struct {
		at   time.Duration
		q    Question
		text string
		want int
	}{
		{1 * time.Second, Question{}, two, 0},
		{6 * time.Second, Question{}, two, 0},
		{12 * time.Second, Question{}, two, 1},
		{23 * time.Second, Question{}, two, 0},
		{34 * time.Second, Question{}, two + " a=8 b=9 8>b 9>a", 0},
		{45 * time.Second, Question{}, two + " a=8 b=9 8>b 9>a", 1},
		{56 * time.Second, Question{}, "x=1 y=2", 0},
		{67 * time.Second, Question{}, two, 0},
		{78 * time.Second, Question{}, two, 1},
		{89 * time.Second, Question{Names: []string{"x"}}, two, 0},
		{90 * time.Second, Question{}, two, 0},
		{100 * time.Second, Question{Names: []string{"x"}}, two, 0},
		{101 * time.Second, Question{}, "x=1 y=2", 0},
		{111 * time.Second, Question{Names: []string{"x"}}, "x=1 y=2", 0},
		{112 * time.Second, Question{}, two, 0},
		{122 * time.Second, Question{Names: []string{"x"}}, two, 0},
		{123 * time.Second, Question{}, two, 1},
		{133 * time.Second, Question{Names: []string{"x"}}, two, 0},
	} {
		if n := len(k.deadlocks(step.q, waitsOf(step.at, step.text), 10*time.Second)); n != step.want {
			t.Errorf("step %d: %d are told, want %d", i, n, step.want)
		}
	}
	if n := len(k.deadlocks(Question{}, waitsOf(time.Hour, two), -1)); n != 0 {
		t.Errorf("%d are told to somebody who does not want to know", n)
	}
}

func TestPossibleDeadlocks(t *testing.T) {
	const two = "x=1 y=2 1>y 2>x"
	for _, c := range []struct {
		name          string
		first, second string
		apart         time.Duration
		want          string
	}{
		{"two wait for each other", two, two, 11 * time.Second, "1>y 2>x"},
		{"they have just begun", "x=1 y=2", two, 11 * time.Second, ""},
		{"they have just ended", two, "x=1 y=2", 11 * time.Second, ""},
		{"the answers are too close", two, two, 10 * time.Second, ""},
		{"somebody else has one of them now", two, "x=1 y=3 1>y 2>x", 11 * time.Second, ""},
		{"nobody has what they wait for", "1>y 2>x", "1>y 2>x", 11 * time.Second, ""},
		{"a chain ends", "x=1 y=2 z=3 1>y 2>z", "x=1 y=2 z=3 1>y 2>z", 11 * time.Second, ""},
		{"three in a circle, and two who wait for one of them", "x=1 y=2 z=3 1>y 2>z 3>x 4>x 5>y", "x=1 y=2 z=3 1>y 2>z 3>x 4>x 5>y", 11 * time.Second, "1>y 2>z 3>x"},
		{"two circles", two + " a=8 b=9 8>b 9>a", two + " a=8 b=9 8>b 9>a", 11 * time.Second, "1>y 2>x | 8>b 9>a"},
		{"a circle behind a circle", two + " 2>a a=8 b=9 8>b 9>a", two + " 2>a a=8 b=9 8>b 9>a", 11 * time.Second, "1>y 2>x | 8>b 9>a"},
		{"it waits for itself, which its process tells", "x=1 1>x", "x=1 1>x", 11 * time.Second, ""},
		{"readers share", "xr=1 yr=2 1>yr 2>xr", "xr=1 yr=2 1>yr 2>xr", 11 * time.Second, ""},
		{"readers wait to write", "xr=1,2 1>x 2>x", "xr=1,2 1>x 2>x", 11 * time.Second, "1>x 2>x"},
	} {
		var got []string
		for _, circle := range Deadlocks(waitsOf(0, c.first), waitsOf(c.apart, c.second), 10*time.Second) {
			var words []string
			for i, w := range circle {
				if next := circle[(i+1)%len(circle)]; next.Owner != w.Holder {
					t.Errorf("%s: %v", c.name, circle)
				}
				words = append(words, w.Owner+">"+w.Name)
			}
			got = append(got, strings.Join(words, " "))
		}
		if text := strings.Join(got, " | "); text != c.want {
			t.Errorf("%s: got %q, want %q", c.name, text, c.want)
		}
	}
}

// However many wait for one another by their own word, few are told, and soon.
func TestAThousandClaimsOfDeadlocksAreBounded(t *testing.T) {
	var words []string
	for i := range 1000 {
		words = append(words, fmt.Sprintf("n%d=%d %d>n%d", i, i, i, i^1))
	}
	text := strings.Join(words, " ")
	if n := len(Deadlocks(waitsOf(0, text), waitsOf(time.Minute, text), time.Second)); n != mostDeadlocks {
		t.Errorf("%d", n)
	}
}

// One client that lies about whatever it likes makes nobody look at more than a
// few.
func TestOneHostileAnswerIsBounded(t *testing.T) {
	var under []string
	claims := make([]Claim, 150)
	for i := range claims {
		claims[i] = Claim{Name: "x", Waits: true}
		for j := range mostUnder {
			claims[i].Under = append(claims[i].Under, fmt.Sprint(i*mostUnder+j))
		}
		under = append(under, claims[i].Under...)
	}
	info := inspect.Info{Name: "x"}
	for i := range 2000 {
		info.Holders = append(info.Holders, inspect.Holder{Owner: fmt.Sprint(i)})
	}
	answers := &Answers{All: []Answer{{Client: "liar", Answered: true, Claims: claims}}, Objects: []Object{{Info: info}}}
	if n := len(answers.waits()); n != mostWaits {
		t.Errorf("%d waits, want %d", n, mostWaits)
	}
	if n := len(answers.waitingHolders()["x"]); n != len(under) {
		t.Errorf("%d holders, want the %d that wait", n, len(under))
	}
	for i := range answers.Objects[0].Holders {
		answers.Objects[0].Holders[i].Owner += " else"
	}
	if n := len(answers.waits()); n != 0 {
		t.Errorf("%d waits for holders that wait for nothing", n)
	}
}
