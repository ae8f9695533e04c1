package archtest

import (
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// textWidth is how many columns the text of a comment has, without what stands
// before it. A reader's eye finds the next line by itself.
const textWidth = 80

// unwrapped are the folders whose comments are wider yet, with all below them; "."
// is the root package alone.
var unwrapped = []string{
	".", "cmd", "examples", "internal/lock", "observe", "ratelimit", "redisson", "redissonyaml", "redlatchgocron", "redlatchgoredis",
	"redlatchotel", "redlatchprom", "redlatchrueidis", "redlatchtest", "redlatchvalkey", "tests", "tools",
}

// A comment on lines of its own is wrapped. One behind code has what room the code
// leaves. What is indented by a tab is code, or a drawing. A word may be longer.
func TestCommentsAreWrapped(t *testing.T) {
	found := map[string]int{} // by the folder in the table
	written(t, func(name string, content []byte) {
		if !strings.HasSuffix(name, ".go") || !wide.Match(content) {
			return
		}
		folder := unwrappedOf(name)
		fset := token.NewFileSet()
		tree, err := parser.ParseFile(fset, name, content, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(string(content), "\n")
		for _, group := range tree.Comments {
			for _, c := range group.List {
				at := fset.Position(c.Pos())
				text, is := strings.CutPrefix(c.Text, "// ")
				switch {
				case !is || strings.TrimSpace(lines[at.Line-1][:at.Column-1]) != "":
				case utf8.RuneCountInString(text) <= textWidth || !strings.Contains(strings.TrimSpace(text), " "):
				case folder != "":
					found[folder]++
				default:
					t.Errorf("%s:%d: the comment has more than %d columns", name, at.Line, textWidth)
				}
			}
		}
	})
	for _, folder := range unwrapped {
		if found[folder] == 0 {
			t.Errorf("the table unwrapped still has %s, where all comments are wrapped", folder)
		}
	}
}

// wide finds what may be a comment that is too wide.
var wide = regexp.MustCompile(`(?m)^\s*// .{81}`)

// unwrappedOf returns the folder of the table to which a file belongs, if it does.
func unwrappedOf(name string) string {
	for _, folder := range unwrapped {
		if folder == path.Dir(name) || folder != "." && strings.HasPrefix(name, folder+"/") {
			return folder
		}
	}
	return ""
}
