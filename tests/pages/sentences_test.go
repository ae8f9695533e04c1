package pages

import (
	"regexp"
	"strings"
	"testing"
)

// users are the pages for those who use the library, and have not read its code.
var users = []string{
	"README.md", "docs/install.md", "docs/quickstart.md", "docs/concepts.md", "docs/choosing.md", "docs/recipes.md", "docs/migrating.md", "docs/faq.md", "docs/connect.md",
	"docs/production.md", "docs/kubernetes.md", "docs/security.md", "docs/cli.md", "docs/guarantees.md", "docs/robustness.md",
}

const mostWords = 25

var (
	tags    = regexp.MustCompile(`<[^>]*>`)
	items   = regexp.MustCompile(`(?m)^ *([*-]|\d+\.) `)
	ends    = regexp.MustCompile(`[.!?:;]["')*]*\s`)
	hasWord = regexp.MustCompile(`[\p{L}\p{N}]`)
)

// sentences returns those of a page, each with as many words as a reader sees.
func sentences(text string) (all []string) {
	text = codeSpan.ReplaceAllString(linked.ReplaceAllString(tags.ReplaceAllString(text, ""), "$1"), "code")
	text = heading.ReplaceAllString(items.ReplaceAllString(text, "\n\n"), "\n\n")
	for block := range strings.SplitSeq(text, "\n\n") {
		parts := []string{block}
		if strings.HasPrefix(strings.TrimSpace(block), "|") {
			parts = strings.FieldsFunc(block, func(r rune) bool { return r == '|' || r == '\n' })
		}
		for _, part := range parts {
			part = strings.Join(strings.Fields(part), " ") + " "
			for part != "" {
				end := len(part)
				if at := ends.FindStringIndex(part); at != nil {
					end = at[1]
				}
				if words(part[:end]) > 0 {
					all = append(all, part[:end])
				}
				part = part[end:]
			}
		}
	}
	return all
}

func words(sentence string) (n int) {
	for w := range strings.FieldsSeq(sentence) {
		if hasWord.MatchString(w) {
			n++
		}
	}
	return n
}

// Who reads in a hurry, or in a language that is not his own, loses the beginning
// of a sentence before it ends.
func TestSentencesOfUsersPagesAreShort(t *testing.T) {
	for _, name := range users {
		all := sentences(page(t, "../../"+name))
		for _, s := range all {
			if n := words(s); n > mostWords {
				t.Errorf("%s: %d words: %s", name, n, s)
			}
		}
		if len(all) < 10 {
			t.Errorf("%s has %d sentences: does this test still read it?", name, len(all))
		}
	}
	if all := sentences("* One two. `Three four`\n  five\n\n| six | seven. eight |\n"); len(all) != 5 || words(all[1]) != 2 {
		t.Errorf("%q", all)
	}
}
