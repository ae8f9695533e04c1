package pages

import (
	"os"
	"strings"
	"testing"
)

// What a reader copies from the page about Kubernetes is what stands in the
// manifests and in the chart, which are tested.
func TestTheKubernetesPageShowsTheManifests(t *testing.T) {
	text, err := os.ReadFile("../../docs/kubernetes.md")
	if err != nil {
		t.Fatal(err)
	}
	snippets := 0
	for i, part := range strings.Split(string(text), "```") {
		snippet, is := strings.CutPrefix(part, "yaml\n")
		if !is || i%2 == 0 {
			continue
		}
		snippets++
		if snippet, is = strings.CutPrefix(snippet, "# "); !is {
			t.Errorf("from which file is\n%s", snippet)
		}
		name, snippet, _ := strings.Cut(snippet, "\n")
		manifest, err := os.ReadFile("../../" + name)
		if err != nil {
			t.Error(err)
			continue
		}
		if !hasIndented(string(manifest), strings.Split(strings.TrimSuffix(snippet, "\n"), "\n")) {
			t.Errorf("%s does not have, in whatever depth,\n%s", name, snippet)
		}
	}
	if snippets < 5 {
		t.Errorf("%d snippets: does this test still read them?", snippets)
	}
}

// hasIndented says whether these lines follow one another in a text, all of them
// indented by as much.
func hasIndented(text string, want []string) bool {
	lines := strings.Split(text, "\n")
	for at := 0; at+len(want) <= len(lines); at++ {
		indent := strings.TrimSuffix(lines[at], want[0])
		if indent == lines[at] || strings.TrimLeft(indent, " ") != "" {
			continue
		}
		same := true
		for i, line := range want {
			same = same && lines[at+i] == indent+line
		}
		if same {
			return true
		}
	}
	return false
}
