package archtest

import (
	"go/parser"
	"go/token"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// textWidth is how many columns the text of a comment has, without what stands
// before it. A reader's eye finds the next line by itself.
const textWidth = 80

// A comment on lines of its own is wrapped. One behind code has what room the code
// leaves. What is indented by a tab is code, or a drawing. What an Example prints
// is as wide as it is. A word may be longer.
func TestCommentsAreWrapped(t *testing.T) {
	written(t, func(name string, content []byte) {
		if !strings.HasSuffix(name, ".go") || !wide.Match(content) {
			return
		}
		fset := token.NewFileSet()
		tree, err := parser.ParseFile(fset, name, content, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(string(content), "\n")
		for _, group := range tree.Comments {
			if strings.HasPrefix(group.List[0].Text, "// Output:") {
				continue
			}
			for _, c := range group.List {
				at := fset.Position(c.Pos())
				text, is := strings.CutPrefix(c.Text, "// ")
				alone := is && strings.TrimSpace(lines[at.Line-1][:at.Column-1]) == ""
				if alone && utf8.RuneCountInString(text) > textWidth && strings.Contains(strings.TrimSpace(text), " ") {
					t.Errorf("%s:%d: the comment has more than %d columns", name, at.Line, textWidth)
				}
			}
		}
	})
}

// wide finds what may be a comment that is too wide.
var wide = regexp.MustCompile(`(?m)^\s*// .{81}`)
