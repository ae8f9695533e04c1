package main

import (
	"fmt"
	"html"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A picture is a plot as SVG: it has no script, its text is text, and it is
// readable on light and on dark pages. The same figures give the same bytes.
type picture struct {
	file string // in the directory images, beside the page
	alt  string
	svg  string
}

// pictures are the plots of what was measured.
func (r record) pictures() []picture {
	var all []picture
	for _, p := range []struct {
		file, client string
		who          []implementation
	}{
		{"performance-rueidis.svg", "rueidis", []implementation{redlatchRueidis, floorRueidis, redislockDefault, redsyncDefault, rueidislockOneKey}},
		{"performance-goredis.svg", "go-redis", []implementation{redlatchGoredis, redlatchShared, floorGoredis, redislockDefault, redsyncDefault}},
	} {
		lines := r.ratesByWidth(p.who)
		if len(lines) == 0 {
			continue
		}
		title := fmt.Sprintf("Acquired and released a second on %s, round trips %s longer", p.client, ms(withinZone))
		all = append(all, picture{p.file, altOf(title, lines), linesSVG(title, lines)})
	}
	if groups := r.handOffBars(); len(groups) > 0 {
		title := "Milliseconds until a lock that one process releases is another's"
		all = append(all, picture{"performance-handoff.svg", title + ", by how much longer a round trip takes than over loopback", barsSVG(title, groups)})
	}
	return all
}

// shown is the picture on the page, or nothing.
func (r record) shown(file string) string {
	for _, p := range r.pictures() {
		if p.file == file {
			return fmt.Sprintf("\n![%s](images/%s)\n", p.alt, p.file)
		}
	}
	return ""
}

// draw writes the pictures to the directory images beside the page.
func (r record) draw(page string) error {
	dir := filepath.Join(filepath.Dir(page), "images")
	for _, p := range r.pictures() {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, p.file), []byte(p.svg), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// A line is one implementation's rate at each width; NaN where it was not
// measured.
type line struct {
	name   string
	values []float64
}

func (r record) ratesByWidth(who []implementation) []line {
	var all []line
	for _, i := range who {
		l := line{name: i.name}
		for _, n := range allWidths {
			l.values = append(l.values, r.Results.median(zone(n), i.name, rate))
		}
		if slices.ContainsFunc(l.values, known) {
			all = append(all, l)
		}
	}
	return all
}

func known(f float64) bool { return !math.IsNaN(f) && f > 0 }

// altOf says what a reader who does not see the lines misses.
func altOf(title string, lines []line) string {
	at := slices.Index(allWidths, 64)
	var ends []string
	for _, l := range lines {
		if known(l.values[at]) {
			ends = append(ends, fmt.Sprintf("%s %s", l.name, short(l.values[at])))
		}
	}
	if len(ends) == 0 {
		return title
	}
	return title + ". With 64: " + strings.Join(ends, "; ")
}

// A group of bars is what is compared at one distance.
type group struct {
	title string
	bars  []bar
}

// A bar is a time in milliseconds, and a line of the table.
type bar struct {
	name string
	ms   float64
}

// betweenProcesses are the rows of the hand-off between processes: who takes part,
// with which lock.
var betweenProcesses = []struct {
	name     string
	who      implementation
	scenario func(time.Duration) string
}{
	{"redlatch, FairLock", redlatchRueidis, farFair},
	{"redlatch, Lock", redlatchRueidis, far},
	{"redlatch, FairLock, a replica confirms", redlatchRueidis, func(d time.Duration) string { return confirmed(farFair(d)) }},
	{"redlatch, Lock, a replica confirms", redlatchRueidis, func(d time.Duration) string { return confirmed(far(d)) }},
	{redislockDefault.name, redislockDefault, far},
	{redislockFast.name, redislockFast, far},
	{rueidislockOneKey.name, rueidislockOneKey, far},
	{redissonPeer.name + ", getFairLock", redissonPeer, farFair},
	{redissonPeer.name + ", getLock", redissonPeer, far},
	{etcdMutex.name, etcdMutex, far},
}

func (r record) handOffBars() []group {
	var all []group
	for _, d := range distances {
		g := group{title: "round trips " + ms(d) + " longer"}
		if limit := r.Results.median(far(d), floorRueidis.name, oneScript) / 1000; known(limit) {
			g.bars = append(g.bars, bar{"one round trip, the limit", limit})
		}
		for _, p := range betweenProcesses {
			if took := r.Results.median(p.scenario(d), p.who.name, handOffP50) / 1000; known(took) {
				g.bars = append(g.bars, bar{p.name, took})
			}
		}
		if len(g.bars) > 0 {
			all = append(all, g)
		}
	}
	return all
}

// The looks of all pictures. Each has its own ground, so that it can be read
// wherever it stands.
const svgStyle = `<style>
.ground{fill:#fff}.text{fill:#1f2328;font:13px sans-serif}.title{font-weight:bold;font-size:14px}.grid{stroke:#d1d9e0}
@media (prefers-color-scheme:dark){.ground{fill:#0d1117}.text{fill:#f0f6fc}.grid{stroke:#3d444d}}
</style>
`

// A look is how a line is drawn. Hues can be told apart on both grounds, and so
// can dashes without them.
type look struct{ hue, dashes string }

// Who is the same in two pictures looks the same.
var looks = map[string]look{
	redlatchRueidis.name: {"#2f81f7", ""}, redlatchGoredis.name: {"#2f81f7", ""}, redlatchShared.name: {"#a371f7", "14 3"},
	floorRueidis.name: {"#8b949e", "2 3"}, floorGoredis.name: {"#8b949e", "2 3"},
	redislockDefault.name: {"#d29922", "8 4"}, redsyncDefault.name: {"#db61a2", "10 3 2 3"}, rueidislockOneKey.name: {"#3fb950", "5 5"},
}

func beginSVG(b *strings.Builder, title string, width, height int) {
	fmt.Fprintf(b, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" role=\"img\">\n<title>%s</title>\n%s", width, height, html.EscapeString(title), svgStyle)
	fmt.Fprintf(b, "<rect class=\"ground\" width=\"%d\" height=\"%d\"/>\n", width, height)
	svgText(b, 12, 22, "title", "start", title)
}

func svgText(b *strings.Builder, x, y float64, class, anchor, text string) {
	fmt.Fprintf(b, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n", strings.TrimSpace("text "+class), x, y, anchor, html.EscapeString(text))
}

// linesSVG draws rates over widths. Both axes are logarithmic.
func linesSVG(title string, lines []line) string {
	const width, height, left, right, top, bottom = 820, 440, 80, 30, 100, 390
	least, most := math.Inf(1), 0.0
	for _, l := range lines {
		for _, v := range l.values {
			if known(v) {
				least, most = min(least, v), max(most, v)
			}
		}
	}
	low, high := math.Log10(rounded(least, -1)), math.Log10(rounded(most, 1))
	xOf := func(n int) float64 {
		return left + (width-left-right)*math.Log2(float64(allWidths[n]))/math.Log2(float64(allWidths[len(allWidths)-1]))
	}
	yOf := func(v float64) float64 { return bottom - (bottom-top)*(math.Log10(v)-low)/(high-low) }
	var b strings.Builder
	beginSVG(&b, title, width, height)
	for v := rounded(least, -1); v <= rounded(most, 1); v = rounded(v*1.5, 1) {
		fmt.Fprintf(&b, "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>\n", left, width-right, yOf(v), yOf(v))
		svgText(&b, left-8, yOf(v)+4, "", "end", thousands(v))
	}
	for n, goroutines := range allWidths {
		svgText(&b, xOf(n), bottom+22, "", "middle", fmt.Sprint(goroutines))
	}
	svgText(&b, width-right, bottom+42, "", "end", "goroutines, each with a key of its own")
	for k, l := range lines {
		look := looks[l.name]
		drawn := fmt.Sprintf("stroke=\"%s\" stroke-width=\"2.5\" stroke-dasharray=\"%s\"", look.hue, look.dashes)
		x, y := 12+float64(k%2)*390, 44+float64(k/2)*20
		fmt.Fprintf(&b, "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" %s/>\n", x, x+34, y-4, y-4, drawn)
		svgText(&b, x+42, y, "", "start", l.name)
		var points []string
		for n, v := range l.values {
			if known(v) {
				points = append(points, fmt.Sprintf("%.1f,%.1f", xOf(n), yOf(v)))
				fmt.Fprintf(&b, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n", xOf(n), yOf(v), look.hue)
			}
		}
		fmt.Fprintf(&b, "<polyline fill=\"none\" points=\"%s\" %s/>\n", strings.Join(points, " "), drawn)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// rounded returns the next of 1, 2, 5, 10, 20, 50, ... in the direction, or v
// itself if it is one of them.
func rounded(v float64, direction int) float64 {
	step := math.Floor(math.Log10(v)+1e-9) - 1
	for {
		for _, digit := range []float64{1, 2, 5} {
			at := digit * math.Pow(10, step)
			next := map[float64]float64{1: 2, 2: 2.5, 5: 2}[digit] * at
			switch {
			case math.Abs(v/at-1) < 1e-9:
				return at
			case at < v && v < next*(1-1e-9) && direction < 0:
				return at
			case at < v && v < next*(1-1e-9):
				return next
			}
		}
		step++
	}
}

// barsSVG draws times. A bar that would leave no room for the others ends early,
// and its figure says how long it is.
func barsSVG(title string, groups []group) string {
	const width, left, right, step = 820, 280, 90, 24
	height := 40
	for _, g := range groups {
		height += 40 + step*len(g.bars)
	}
	most := 0.0
	for _, g := range groups {
		for _, bar := range g.bars {
			if strings.HasPrefix(bar.name, "redlatch") {
				most = max(most, 2*bar.ms)
			}
		}
	}
	if most == 0 {
		most = 1
	}
	var b strings.Builder
	beginSVG(&b, title, width, height)
	y := 40.0
	for _, g := range groups {
		y += 24
		svgText(&b, 12, y, "title", "start", g.title)
		y += 8
		for _, bar := range g.bars {
			hue := looks[floorRueidis.name].hue
			if strings.HasPrefix(bar.name, "redlatch") {
				hue = looks[redlatchRueidis.name].hue
			}
			figure := short(bar.ms)
			if bar.ms > most {
				figure += " →"
			}
			length := (width - left - right) * min(bar.ms, most) / most
			svgText(&b, left-8, y+16, "", "end", bar.name)
			fmt.Fprintf(&b, "<rect x=\"%d\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/>\n", left, y+3, length, step-6, hue)
			svgText(&b, left+length+6, y+16, "", "start", figure)
			y += step
		}
		y += 8
	}
	b.WriteString("</svg>\n")
	return b.String()
}
