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
		if i > 0 && p.At.Sub(points[i-1].At) > 4*h.o.Interval+mostLooking {
			s.Gaps = append(s.Gaps, x-0.5)
		}
		if n, _ := of(p); n > 0 {
			height := max(1.5, float64(n)*(barHeight-2)/float64(max(most, 1)))
			s.Bars = append(s.Bars, bar{x, barHeight - height, height})
		}
	}
	switch {
	case len(points) == 0:
		return s
	case most == 0 && last == "-":
		s.Text = "no time is known"
	default:
		s.Text = "now " + last + ", at most " + mostText
	}
	s.Desc = fmt.Sprintf("%s, from %s to %s: %s.", overview.Plural(len(points), "look"), clock(points[0].At), clock(points[len(points)-1].At), s.Text)
	return s
}

// A drawing shows who has a lock and who waits for it, on the left, and what these
// have and wait for besides, on the right.
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

// An edge leads from somebody to a lock that is held or waited for.
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

// A sketch is a drawing that is being made.
type sketch struct {
	drawing

	h           *Handler
	lock        *overview.Lock
	all         *overview.Listing
	locks       map[string]*node // on the right
	left, right int              // how many nodes there are
	said        []string         // the same in words
}

// draw draws a lock. It returns nil if nobody has it or waits for it.
func (h *Handler) draw(l *overview.Lock, all *overview.Listing) *drawing {
	s := &sketch{drawing: drawing{Width: 2*nodeWidth + nodeBetween}, h: h, lock: l, all: all, locks: map[string]*node{}}
	this := s.target(l.Name)
	for i := range l.Holders[:min(len(l.Holders), mostHolders)] {
		s.holder(&l.Holders[i], this)
	}
	if more := len(l.Holders) - mostHolders; more > 0 {
		s.edge("holds", s.person("more", fmt.Sprintf("%d more", more), "hold it"), this)
		s.say("%d more hold it", more)
	}
	drawn := min(len(l.Waiting), mostDrawn)
	for i := range l.Waiting[:drawn] {
		s.waiter(&l.Waiting[i], this)
	}
	if total, _ := l.Waiters(); total > drawn {
		s.edge("waits", s.person("more", fmt.Sprintf("%d more", total-drawn), "wait"), this)
		s.say("%d more wait", total-drawn)
	}
	if len(s.said) == 0 {
		return nil
	}
	s.Height = max(s.left, s.right)*(nodeHeight+nodeGap) - nodeGap
	s.Desc = strings.Join(s.said, "; ") + "."
	return &s.drawing
}

func (s *sketch) say(format string, args ...any) {
	s.said = append(s.said, fmt.Sprintf(format, args...))
}

// holder draws somebody who has the lock, and what that one waits for.
func (s *sketch) holder(o *overview.Holder, this *node) {
	who := s.h.text(o.WhoText())
	n := s.person("holder", who, o.ForText())
	s.edge("holds", n, this)
	s.say("%s holds it", who)
	for _, name := range s.all.WaitedForBy(o.Owner) {
		if to := s.target(name); to != nil {
			s.edge("waits", n, to)
			s.say("%s waits for %s", who, s.h.text(name))
		}
	}
}

// waiter draws somebody who waits for the lock, and what that one has meanwhile.
func (s *sketch) waiter(w *overview.Claim, this *node) {
	who := s.h.text(w.Who())
	n := s.person("waiter", who, w.ForText())
	s.edge("waits", n, this)
	s.say("%s waits for it", who)
	for _, name := range s.all.HeldAs(w.Under) {
		if to := s.target(name); to != nil && to != this {
			s.edge("holds", n, to)
			s.say("%s holds %s", who, s.h.text(name))
		}
	}
}

// target is the node of a lock; nil if there are too many.
func (s *sketch) target(name string) *node {
	if n := s.locks[name]; n != nil || s.right > mostDrawn {
		return n
	}
	n := &node{X: nodeWidth + nodeBetween, Y: s.right * (nodeHeight + nodeGap), Class: "lock", Text: short(s.h.text(name))}
	if name == s.lock.Name {
		n.Class = "lock this"
	}
	s.right++
	s.locks[name] = n
	s.add(n)
	return n
}

// person is a new node of somebody.
func (s *sketch) person(class, who, small string) *node {
	who, pid, ok := strings.Cut(who, " pid ")
	switch {
	case ok && small == "-": // it is not known for how long
		small = "pid " + pid
	case ok:
		small = "pid " + pid + ", " + small
	case small == "-":
		small = ""
	}
	n := &node{Y: s.left * (nodeHeight + nodeGap), Class: class, Text: short(who), Small: short(small)}
	s.left++
	s.add(n)
	return n
}

func (s *sketch) add(n *node) {
	n.Width, n.Height = nodeWidth, nodeHeight
	s.Nodes = append(s.Nodes, n)
}

// edge draws one from somebody to a lock.
func (s *sketch) edge(class string, from, to *node) {
	const head = 7
	aside := map[string]int{"holds": -6, "waits": 6}[class] // so that they do not lie on one another
	x1, y1 := from.X+from.Width, from.Y+from.Height/2+aside
	x2, y2 := to.X, to.Y+to.Height/2+aside
	bend := (x2 - x1) / 2
	s.Edges = append(s.Edges, edge{
		Class: class,
		Path:  fmt.Sprintf("M%d %dC%d %d %d %d %d %d", x1, y1, x1+bend, y1, x2-bend, y2, x2-head, y2),
		Head:  fmt.Sprintf("M%d %dl-%d -4v8z", x2, y2, head+1),
	})
}

// short is what fits into a node of a text.
func short(text string) string {
	const most = 19
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
