package pages

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	block    = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	codeSpan = regexp.MustCompile("`[^`\n]*`")
	inline   = regexp.MustCompile(`\]\(([^)\s]+)\)|(?:src|href)="([^"]+)"`)
	heading  = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	linked   = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	unlinked = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// page reads a page, without its code.
func page(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return block.ReplaceAllString(string(text), "")
}

// anchors returns the names by which links find the headings of a page, as GitHub
// makes them.
func anchors(text string) []string {
	var all []string
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		name := linked.ReplaceAllString(strings.ReplaceAll(m[1], "`", ""), "$1")
		all = append(all, strings.ReplaceAll(unlinked.ReplaceAllString(strings.ToLower(name), ""), " ", "-"))
	}
	return all
}

// markdown returns all pages of the repository.
func markdown(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{"*.md", "docs/*.md", "*/README.md", "*/*/README.md"} {
		found, err := filepath.Glob("../../" + pattern)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// A link to what is not there costs a reader the answer that he came for. Links to
// other hosts are not followed.
func TestEveryLinkLeadsSomewhere(t *testing.T) {
	links := 0
	for _, from := range markdown(t) {
		text := codeSpan.ReplaceAllString(page(t, from), "")
		for _, m := range inline.FindAllStringSubmatch(text, -1) {
			target := m[1] + m[2]
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			links++
			path, anchor, _ := strings.Cut(target, "#")
			to := filepath.Join(filepath.Dir(from), path)
			if path == "" {
				to = from
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s: there is no %s", from, target)
				continue
			}
			if anchor != "" && !slices.Contains(anchors(page(t, to)), anchor) {
				t.Errorf("%s: %s has no heading for #%s", from, to, anchor)
			}
		}
	}
	if links < 100 {
		t.Errorf("%d links found: does this test still read them?", links)
	}
}
