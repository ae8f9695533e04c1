package dashboard

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redlatch/redlatch/internal/overview"
)

// A lock is the page of one lock or synchronizer.
type lock struct {
	Name   string
	Known  bool // else nobody has looked yet, or it could not be had
	Error  string
	Exists bool
	IsLock bool
	State  string // in a few words
	Held   bool
	Facts  []fact

	callers

	Deadlocks []note
	Drawing   *drawing
	Times     []*sparkline
	Seen      []seen
}

// Callers are those of a lock.
type callers struct {
	Holders, Waiters, Claims, Lost []caller

	Others, Silent string // those of whom nothing is known but that they are there
}

// A fact is a word and its value.
type fact struct{ Word, Value string }

// A caller holds, waits for, claims or has lost a lock.
type caller struct {
	Who, Owner, For, Ago, Lease, What, Site, Note, Until string

	Also []other // what a waiter holds meanwhile
}

// An other is another lock.
type other struct{ Name, Link string }

// A seen is what was seen of a lock, and when.
type seen struct{ At, AtFull, Text string }

// lock makes the page of a lock of what is known of it.
func (h *Handler) lock(name string, last *look, histories *overview.Histories) *lock {
	p := &lock{Name: h.text(name)}
	looked, ok := last.Looked[name]
	listed := last.Named(name)
	switch {
	case ok && looked.Err != nil:
		p.Error = h.text(looked.Err.Error())
	case ok:
		h.addLock(p, &looked.Lock, &last.Listing)
	case listed != nil:
		h.addLock(p, listed, &last.Listing)
	}
	if history := histories.Of(name); history != nil {
		h.addHistory(p, history)
	}
	return p
}

func (h *Handler) addLock(p *lock, l *overview.Lock, all *overview.Listing) {
	p.Known, p.Exists, p.IsLock, p.Held = true, l.Exists, overview.IsLock(l.Kind), l.Held
	switch {
	case !l.Exists:
		p.State = "free"
	case !p.IsLock:
		p.State = l.Stands()
	case l.Held:
		p.State = h.text(string(l.Kind)) + ", held"
	default:
		p.State = h.text(string(l.Kind)) + ", free"
	}
	for i := range l.Holders[:min(len(l.Holders), mostRows)] {
		p.Holders = append(p.Holders, h.holder(&l.Holders[i]))
	}
	h.addWaiters(p, l, all)
	for i := range l.Claims[:min(len(l.Claims), mostRows)] {
		c := h.claim(&l.Claims[i])
		c.What = commas(c.What, l.Claims[i].Worth())
		p.Claims = append(p.Claims, c)
	}
	for i := range slices.Backward(l.Lost) {
		c := h.claim(&l.Lost[i])
		c.For, c.Ago, c.What = "", c.For, commas(c.What, h.text(l.Lost[i].Reason))
		p.Lost = append(p.Lost, c)
	}
	p.Deadlocks = h.circles(l.Deadlocks)
	if l.Silent != nil && *l.Silent > 0 {
		p.Silent = overview.SilenceText(*l.Silent)
	}
	h.addFacts(p, l)
	p.Drawing = h.draw(l, all)
}

func (h *Handler) addFacts(p *lock, l *overview.Lock) {
	add := func(word, value string) { p.Facts = append(p.Facts, fact{word, value}) }
	if p.IsLock {
		add("Held for", overview.SpanText(l.LongestHold()))
	}
	add("Waiting", l.WaitersText())
	add("Longest wait", overview.SpanText(l.LongestWait()))
	if l.Held || !p.IsLock && l.Exists {
		add("Lease", l.LeaseText())
	}
	if l.Token > 0 {
		add("Token", strconv.FormatInt(l.Token, 10))
	}
	if l.Rate != nil {
		add("Rate", l.Rate.Text())
	}
	if l.Generation != "" {
		add("Generation", h.text(l.Generation))
	}
}

func (h *Handler) holder(o *overview.Holder) caller {
	times := ""
	if o.Count > 1 {
		times = fmt.Sprintf("%d times", o.Count)
	}
	return caller{
		Who: h.text(o.WhoText()), Owner: h.text(o.Owner), For: o.ForText(), Lease: o.LeaseText(o.TTL), Site: h.text(o.Site), Note: h.text(o.Note),
		What: commas(h.text(o.Mode), h.text(o.Value), times),
	}
}

// commas is those texts that are not empty, with commas between them.
func commas(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), ", ")
}

func (h *Handler) claim(c *overview.Claim) caller {
	return caller{Who: h.text(c.Who()), Owner: h.text(c.Owner), For: c.ForText(), What: h.text(c.Mode), Site: h.text(c.Site), Note: h.text(c.Note)}
}

// addWaiters adds who waits: first those in the queue, if there is one, then who
// else says so.
func (h *Handler) addWaiters(p *lock, l *overview.Lock, all *overview.Listing) {
	said := map[string]*overview.Claim{}
	for i := range l.Waiting {
		said[l.Waiting[i].Owner] = &l.Waiting[i]
	}
	for i := range l.Queue {
		w := &l.Queue[i]
		c := caller{Who: h.text(w.ByText(w.Client, w.Redlatch)), Owner: h.text(w.Owner), For: w.ForText(), Site: h.text(w.Site)}
		if w.Until != 0 {
			c.Until = clock(time.UnixMilli(w.Until))
		}
		if claim := said[w.Owner]; claim != nil && w.Owner != "" {
			c.Also = h.others(all.HeldAs(claim.Under))
		}
		p.Waiters = append(p.Waiters, c)
	}
	for w := range l.Unqueued {
		c := h.claim(w)
		c.Also = h.others(all.HeldAs(w.Under))
		p.Waiters = append(p.Waiters, c)
	}
	if left := len(p.Waiters) - mostRows; left > 0 {
		p.Waiters = p.Waiters[:mostRows]
		p.Others = fmt.Sprintf("%d more wait. ", left)
	}
	if others := l.OthersText(); others != "" {
		p.Others += "And " + others + "."
	}
}

func (h *Handler) others(names []string) (all []other) {
	for _, name := range names[:min(len(names), mostCircles)] {
		all = append(all, other{h.text(name), link(name)})
	}
	return all
}

// addHistory adds what was seen of a lock while somebody looked, the latest first.
func (h *Handler) addHistory(p *lock, history *overview.History) {
	ms := func(d time.Duration) int { return int(d.Milliseconds()) }
	p.Times = []*sparkline{
		h.sparkline("hold", "Held for", history.Points, func(o overview.Point) (int, string) { return ms(o.Held), overview.SpanText(o.Held) }),
		h.sparkline("wait", "Longest wait", history.Points, func(o overview.Point) (int, string) { return ms(o.Longest), overview.SpanText(o.Longest) }),
		h.sparkline("waiters", "Waiting", history.Points, func(o overview.Point) (int, string) { return o.Waiters, strconv.Itoa(o.Waiters) }),
	}
	for _, n := range slices.Backward(history.Notes) {
		p.Seen = append(p.Seen, seen{n.AtText(time.Now()), n.At.Format(time.RFC3339), h.text(n.Text)})
	}
}
