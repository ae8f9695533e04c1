// Site writes README and docs as the pages of a site: a link to a page leads to
// that page, and a link to anything else in the repository leads there. make site
// runs it, and then the generator.
package main

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// repository is where links lead that lead to no page.
const repository = "https://github.com/redlatch/redlatch/"

// front are the pages that do not stand in docs, and their names in the site.
var front = map[string]string{
	"README.md": "index.md", "CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md", "SECURITY.md": "reporting.md",
	"examples/README.md": "examples.md",
}

// wide leaves the room of a page's contents to the page. The first one has a
// program, whose lines are not to be cut, and the table of all that redlatch is
// compared with.
const wide = "---\nhide: [toc]\n---\n\n"

func main() {
	if err := write("..", os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
}

// write writes the pages of the repository in top into a folder, which it makes
// anew.
func write(top, out string) error {
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	pages := maps.Clone(front)
	docs, err := filepath.Glob(filepath.Join(top, "docs", "*.md"))
	if err != nil {
		return err
	}
	for _, file := range docs {
		pages["docs/"+filepath.Base(file)] = filepath.Base(file)
	}
	for from, to := range pages {
		text, err := os.ReadFile(filepath.Join(top, from))
		if err != nil {
			return err
		}
		moved, err := moveLinks(os.DirFS(top), pages, from, string(text))
		if err != nil {
			return err
		}
		if to == "index.md" {
			moved = wide + moved
		}
		if err := writeFile(filepath.Join(out, to), []byte(moved)); err != nil {
			return err
		}
	}
	return os.CopyFS(filepath.Join(out, "images"), os.DirFS(filepath.Join(top, "docs", "images")))
}

func writeFile(name string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
		return err
	}
	return os.WriteFile(name, text, 0o600)
}

var target = regexp.MustCompile(`(\]\(|src="|href=")([^)"\s]+)([)"])`)

// moveLinks returns the text of a page as it stands in the site.
func moveLinks(top fs.FS, pages map[string]string, from, text string) (string, error) {
	var dead error
	moved := target.ReplaceAllStringFunc(text, func(link string) string {
		m := target.FindStringSubmatch(link)
		to, anchor, hasAnchor := strings.Cut(m[2], "#")
		if strings.Contains(to, ":") || to == "" {
			return link
		}
		if hasAnchor {
			anchor = "#" + anchor
		}
		to = path.Join(path.Dir(from), to)
		if page := pages[to]; page != "" {
			return m[1] + page + anchor + m[3]
		}
		if image, is := strings.CutPrefix(to, "docs/images/"); is {
			return m[1] + "images/" + image + m[3]
		}
		info, err := fs.Stat(top, to)
		if err != nil {
			dead = fmt.Errorf("%s links to %s: %w", from, m[2], err)
			return link
		}
		kind := "blob"
		if info.IsDir() {
			kind = "tree"
		}
		return m[1] + repository + kind + "/main/" + to + anchor + m[3]
	})
	return moved, dead
}
