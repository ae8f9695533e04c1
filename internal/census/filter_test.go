package census

import (
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestAPatternMatchesAsInRedis(t *testing.T) {
	for _, c := range []struct {
		pattern string
		matches []string
		others  []string
	}{
		{"orders", []string{"orders"}, []string{"order", "orders:1", ""}},
		{"orders:*", []string{"orders:", "orders:42", "orders:a/b"}, []string{"orders", "xorders:1"}},
		{"*", []string{"", "a", "a/b\n"}, nil},
		{"a?c", []string{"abc", "a\x00c"}, []string{"ac", "abbc"}},
		{"*a*b", []string{"ab", "xaxb", "aab", "abab"}, []string{"a", "ba", "abx"}},
		{"[a-c]1", []string{"a1", "c1"}, []string{"d1", "-1"}},
		{"[c-a]1", []string{"b1"}, []string{"d1"}},
		{"[^a-c]1", []string{"d1"}, []string{"a1", "1"}},
		{"[ab", []string{"a", "b"}, []string{"c", "ab"}},
		{`\*`, []string{"*"}, []string{"a", `\*`}},
		{`[\]]`, []string{"]"}, []string{`\`}},
		{`a\`, []string{`a\`}, []string{"a"}},
		{"[]a", nil, []string{"a", "]a"}},
		{"[^]", []string{"a"}, []string{"", "ab"}},
		{"", []string{""}, []string{"a"}},
	} {
		for _, text := range c.matches {
			if !match(c.pattern, text) {
				t.Errorf("%q does not match %q", c.pattern, text)
			}
		}
		for _, text := range c.others {
			if match(c.pattern, text) {
				t.Errorf("%q matches %q", c.pattern, text)
			}
		}
	}
}

// Patterns of asterisks and question marks are regular expressions.
func FuzzPattern(f *testing.F) {
	f.Fuzz(func(t *testing.T, pattern, text string) {
		got := match(pattern, text)
		if again := match(pattern, text); again != got {
			t.Fatal("it matches once")
		}
		if len(pattern) > mostGlob || strings.ContainsAny(pattern, `[\`) || !asText(pattern) || !asText(text) {
			return
		}
		re := regexp.MustCompile("(?s)^" + strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(pattern)) + "$")
		if want := re.MatchString(text); got != want {
			t.Errorf("%q, %q: %v", pattern, text, got)
		}
	})
}

// asText says whether each byte is a character.
func asText(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= 0x80 })
}

// Somebody may send the worst pattern there is. It is no test of speed: what tries
// all ways to divide the text does not end.
func TestAWickedPatternEnds(t *testing.T) {
	pattern, text := strings.Repeat("a*", mostGlob/2-1)+"b", strings.Repeat("a", 10_000)
	done := make(chan bool, 1)
	go func() { done <- match(pattern, text) }()
	select {
	case matched := <-done:
		if matched {
			t.Error("it matches")
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("it does not end")
	}
}
