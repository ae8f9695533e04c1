package dashboard

import (
	"fmt"
	"strings"

	"github.com/redlatch/redlatch/internal/overview"
)

// A sparkline shows a value at each look, as a bar.
type sparkline struct {
	ID, Title, Text, Desc string
	Width, Height         int
	Bars                  []bar
	Gaps                  []float64 // where nobody looked for a while
}

type bar struct{ X, Y, Height float64 }

const (
	barSlots  = 120 // as many as a history has points
	barPitch  = 4
	barHeight = 44
)

// sparkline draws what of says of each point: a value, and that in words.
func (h *Handler) sparkline(id, title string, points []overview.Point, of func(overview.Point) (int, string)) *sparkline {
	s := &sparkline{ID: id, Title: title, Width: barSlots * barPitch, Height: barHeight}
	most, mostText, last := 0, "", ""
	for _, p := range points {
		n, text := of(p)
		if last = text; n >= most {
			most, mostText = n, text
		}
	}
	points = points[max(0, len(points)-barSlots):]
	for i, p := range points {
		x := float64(barPitch * (barSlots - len(points) + i))
		if i > 0 && p.At.Sub(points[i-1].At) > 4*h.o.Interval {
			s.Gaps = append(s.Gaps, x-0.5)
		}
		if n, _ := of(p); n > 0 {
			height := max(1.5, float64(n)*(barHeight-2)/float64(max(most, 1)))
			s.Bars = append(s.Bars, bar{x, barHeight - height, height})
		}
	}
	if len(points) > 0 {
		s.Text = "now " + last + ", at most " + mostText
		s.Desc = fmt.Sprintf("%s, from %s to %s: %s.", count(len(points), "look"), clock(points[0].At), clock(points[len(points)-1].At), s.Text)
	}
	return s
}

// A drawing shows who has a lock and who waits for it, on the left, and what these have and wait for
// besides, on the right.
type drawing struct {
	Width, Height int
	Nodes         []*node
	Edges         []edge
	Desc          string
}

type node struct {
	X, Y, Width, Height int
	Class, Text, Small  string
}

// An edge leads from somebody to a lock that he has, or waits for.
type edge struct {
	Class, Path, Head string
}

const (
	nodeWidth   = 148
	nodeHeight  = 40
	nodeGap     = 12
	nodeBetween = 64

	mostHolders = 4
	mostDrawn   = 8 // waiters, and other locks
)

// draw draws a lock. It returns nil if nobody has it or waits for it.
func (h *Handler) draw(l *overview.Lock, all *overview.Listing) *drawing {
	d := &drawing{Width: 2*nodeWidth + nodeBetween}
	var said []string
	right := map[string]*node{}
	rows := 0 // on the right
	target := func(name string) *node {
		if n := right[name]; n != nil {
			return n
		}
		if rows > mostDrawn {
			return nil
		}
		n := &node{X: nodeWidth + nodeBetween, Y: rows * (nodeHeight + nodeGap), Class: "lock", Text: short(h.text(name))}
		if name == l.Name {
			n.Class = "lock this"
		}
		rows++
		right[name] = n
		d.add(n)
		return n
	}
	this := target(l.Name)
	left := 0
	person := func(class, who, small string) *node {
		who, pid, ok := strings.Cut(who, " pid ")
		if ok {
			small = "pid " + pid + ", " + small
		}
		n := &node{Y: left * (nodeHeight + nodeGap), Class: class, Text: short(who), Small: short(small)}
		left++
		d.add(n)
		return n
	}
	for i := range l.Holders[:min(len(l.Holders), mostHolders)] {
		o := &l.Holders[i]
		who := h.text(o.ByText(o.Client, o.Redlatch))
		n := person("holder", who, o.ForText())
		d.edge("holds", n, this)
		said = append(said, who+" holds it")
		for _, name := range all.WaitedForBy(o.Owner) {
			if to := target(name); to != nil {
				d.edge("waits", n, to)
				said = append(said, who+" waits for "+h.text(name))
			}
		}
	}
	if more := len(l.Holders) - mostHolders; more > 0 {
		d.edge("holds", person("more", fmt.Sprintf("%d more", more), "hold it"), this)
		said = append(said, fmt.Sprintf("%d more hold it", more))
	}
	drawn := 0
	for i := range l.Waiting[:min(len(l.Waiting), mostDrawn)] {
		w := &l.Waiting[i]
		who := h.text(w.Who())
		n := person("waiter", who, w.ForText())
		drawn++
		d.edge("waits", n, this)
		said = append(said, who+" waits for it")
		for _, name := range all.HeldAs(w.Under) {
			if to := target(name); to != nil && to != this {
				d.edge("holds", n, to)
				said = append(said, who+" holds "+h.text(name))
			}
		}
	}
	if total, _ := l.Waiters(); total > drawn {
		d.edge("waits", person("more", fmt.Sprintf("%d more", total-drawn), "wait"), this)
		said = append(said, fmt.Sprintf("%d more wait", total-drawn))
	}
	if len(said) == 0 {
		return nil
	}
	d.Height = max(left, rows)*(nodeHeight+nodeGap) - nodeGap
	d.Desc = strings.Join(said, "; ") + "."
	return d
}

func (d *drawing) add(n *node) {
	n.Width, n.Height = nodeWidth, nodeHeight
	d.Nodes = append(d.Nodes, n)
}

// edge draws one from somebody to a lock.
func (d *drawing) edge(class string, from, to *node) {
	const head = 7
	aside := map[string]int{"holds": -6, "waits": 6}[class] // so that they do not lie on one another
	x1, y1 := from.X+from.Width, from.Y+from.Height/2+aside
	x2, y2 := to.X, to.Y+to.Height/2+aside
	bend := (x2 - x1) / 2
	e := edge{Class: class}
	e.Path = fmt.Sprintf("M%d %dC%d %d %d %d %d %d", x1, y1, x1+bend, y1, x2-bend, y2, x2-head, y2)
	e.Head = fmt.Sprintf("M%d %dl-%d -4v8z", x2, y2, head+1)
	d.Edges = append(d.Edges, e)
}

// short is what fits into a node of a text.
func short(text string) string {
	const most = 21
	width := 0
	for i, r := range text {
		if width++; r >= 0x1100 { // most of these are twice as wide
			width++
		}
		if width > most {
			return text[:i] + "…"
		}
	}
	return text
}
