package main

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A picture stands in a page of others, so it must be well-formed, run nothing and
// load nothing.
func TestThePicturesAreTextAndRunNothing(t *testing.T) {
	t.Parallel()
	r := record{Results: sample(20)}
	for i := range r.Results {
		r.Results[i].HandOffP50 *= 250
	}
	pictures := r.pictures()
	if len(pictures) != 3 {
		t.Fatalf("%d pictures", len(pictures))
	}
	for n, words := range [][]string{
		{"redlatch on rueidis", "floor on rueidis", "redislock", "redsync", "rueidislock, 1 key", "512", "1,000"},
		{"redlatch on go-redis", "redlatch on go-redis, shared pipelines", "floor on go-redis", "redislock", "redsync"},
		{"round trips 0.5 ms longer", "round trips 2 ms longer", "redlatch, FairLock", "redlatch, Lock, a replica confirms", "Redisson, getFairLock", "etcd", "one round trip, the limit"},
	} {
		p := pictures[n]
		if p.alt == "" || strings.ContainsAny(p.alt, "[]\n") {
			t.Errorf("%s: the alternative text is %q", p.file, p.alt)
		}
		texts := map[string]bool{}
		decoder := xml.NewDecoder(strings.NewReader(p.svg))
		within := ""
		for {
			token, err := decoder.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", p.file, err)
			}
			switch token := token.(type) {
			case xml.StartElement:
				within = token.Name.Local
				switch within {
				case "svg", "title", "style", "rect", "line", "circle", "polyline", "text":
				default:
					t.Errorf("%s: a <%s>", p.file, within)
				}
				for _, a := range token.Attr {
					if strings.HasPrefix(a.Name.Local, "on") || a.Name.Local == "href" || strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "Inf") {
						t.Errorf("%s: <%s %s=%q>", p.file, within, a.Name.Local, a.Value)
					}
				}
			case xml.CharData:
				if within == "text" {
					texts[string(token)] = true
				}
			}
		}
		for _, want := range words {
			if !texts[want] {
				t.Errorf("%s lacks the text %q", p.file, want)
			}
		}
		if !strings.Contains(p.svg, "prefers-color-scheme:dark") {
			t.Errorf("%s has no dark ground", p.file)
		}
	}
}

// Else each run would change pictures that show the same.
func TestTheSameFiguresDrawTheSamePictures(t *testing.T) {
	t.Parallel()
	page := filepath.Join(t.TempDir(), "performance.md")
	r := record{Results: sample(20)}
	if err := r.draw(page); err != nil {
		t.Fatal(err)
	}
	for _, p := range r.pictures() {
		got, err := os.ReadFile(filepath.Join(filepath.Dir(page), "images", p.file))
		if err != nil || string(got) != p.svg {
			t.Errorf("%s: another picture, %v", p.file, err)
		}
		if !strings.Contains(r.page(), "(images/"+p.file+")") {
			t.Errorf("the page does not show %s", p.file)
		}
	}
}

func TestWhatWasNotMeasuredIsNotDrawn(t *testing.T) {
	t.Parallel()
	if got := (record{}).pictures(); len(got) != 0 {
		t.Errorf("%d pictures of nothing", len(got))
	}
	few := record{Results: results{{Scenario: zone(2), Implementation: redlatchRueidis.name, Rate: 7, PairP50: 3}}}
	if got := few.pictures(); len(got) != 1 || strings.Contains(got[0].svg, "NaN") || strings.Contains(got[0].svg, floorRueidis.name) {
		t.Errorf("%+v", got)
	}
	if page := few.page(); strings.Contains(page, "performance-goredis.svg") || !strings.Contains(page, "performance-rueidis.svg") {
		t.Error("the page shows other pictures than there are")
	}
}

func TestTheScaleIsRound(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ v, below, above float64 }{
		{1, 1, 1}, {2, 2, 2}, {3, 2, 5}, {5, 5, 5}, {7, 5, 10}, {9.99, 5, 10}, {10, 10, 10}, {1500, 1000, 2000}, {50_000, 50_000, 50_000}, {0.3, 0.2, 0.5},
	} {
		if below, above := rounded(c.v, -1), rounded(c.v, 1); math.Abs(below-c.below) > 1e-6 || math.Abs(above-c.above) > 1e-6 {
			t.Errorf("%v: %v to %v, want %v to %v", c.v, below, above, c.below, c.above)
		}
	}
}
