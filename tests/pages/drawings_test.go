package pages

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
)

// A drawing is for those who read at night, too, and for those who cannot see it.
func TestDrawingsAreForEverybody(t *testing.T) {
	var drawings [][]string
	for name, count := range map[string]int{"docs/concepts.md": 3, "docs/choosing.md": 1} {
		found := regexp.MustCompile(`!\[([^\]]*)\]\((images/\w+\.svg)\)`).FindAllStringSubmatch(page(t, "../../"+name), -1)
		if len(found) != count {
			t.Errorf("%s has %d drawings", name, len(found))
		}
		drawings = append(drawings, found...)
	}
	for _, m := range drawings {
		if len(strings.Fields(m[1])) < 10 {
			t.Errorf("%s has no text that says what it shows: %q", m[2], m[1])
		}
		drawing, err := os.ReadFile("../../docs/" + m[2])
		if err != nil {
			t.Error(err)
			continue
		}
		for _, part := range []string{"<title", "<desc", "prefers-color-scheme:dark"} {
			if !strings.Contains(string(drawing), part) {
				t.Errorf("%s has no %s", m[2], part)
			}
		}
		d := xml.NewDecoder(strings.NewReader(string(drawing)))
		for {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Errorf("%s: %v", m[2], err)
				break
			}
		}
	}
}
