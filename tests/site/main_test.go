package main

import (
	"testing"
	"testing/fstest"

	"github.com/redlatch/redlatch/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// A reader of the site is led to the site's pages, and to the repository for all
// else.
func TestLinksLeadToPagesOrToTheRepository(t *testing.T) {
	top := fstest.MapFS{"latch/latch.go": &fstest.MapFile{}, "docs/images/x.svg": &fstest.MapFile{}}
	pages := map[string]string{"README.md": "index.md", "docs/cli.md": "cli.md", "docs/faq.md": "faq.md"}
	for _, tt := range [][3]string{
		{"README.md", "[a](docs/cli.md#run) [b](latch)", "[a](cli.md#run) [b](" + repository + "tree/main/latch)"},
		{"docs/faq.md", "[a](cli.md) [b](../latch/latch.go#L1)", "[a](cli.md) [b](" + repository + "blob/main/latch/latch.go#L1)"},
		{"docs/faq.md", "[a](#errors) [b](https://example.com/x) [c](../README.md)", "[a](#errors) [b](https://example.com/x) [c](index.md)"},
		{"README.md", `<img src="docs/images/x.svg"> ![a](docs/images/x.svg)`, `<img src="images/x.svg"> ![a](images/x.svg)`},
	} {
		if got, err := moveLinks(top, pages, tt[0], tt[1]); err != nil || got != tt[2] {
			t.Errorf("%s: %s became %s (%v)", tt[0], tt[1], got, err)
		}
	}
	if _, err := moveLinks(top, pages, "README.md", "[a](nowhere.md)"); err == nil {
		t.Error("a dead link is taken for a link")
	}
}
