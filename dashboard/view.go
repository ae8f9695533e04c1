package dashboard

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redlatch/redlatch/internal/overview"
)

const (
	mostRows   = 250     // of a list, and of what a lock's page has many of
	mostFilter = 200     // bytes
	mostName   = 8 << 10 // bytes
)

// A query is what a page is asked to show.
type query struct {
	lock   bool
	name   string
	order  overview.Order
	filter string
}

// asked reads a query.
func asked(r *http.Request, lock bool) (query, error) {
	v := r.URL.Query()
	q := query{lock: lock, name: v.Get("name"), order: overview.Order(v.Get("sort")), filter: v.Get("filter")}
	switch {
	case lock && q.name == "":
		return q, errors.New("no lock is named: lock?name=NAME")
	case len(q.name) > mostName || len(q.filter) > mostFilter:
		return q, fmt.Errorf("a name has at most %d bytes here, and a filter %d", mostName, mostFilter)
	}
	if !lock {
		q.name = ""
	}
	if !slices.Contains(overview.Orders, q.order) {
		q.order = overview.Orders[0]
	}
	return q, nil
}

// printable is a filter as a form shows it, which is sent again: without what
// cannot be printed.
func printable(filter string) string {
	return strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) || r == '\uFFFD' {
			return -1
		}
		return r
	}, filter)
}

// values are the query as it stands behind a question mark.
func (q query) values() string {
	v := url.Values{}
	switch {
	case q.lock:
		v.Set("name", q.name)
	default:
		if q.filter != "" {
			v.Set("filter", q.filter)
		}
		if q.order != overview.Orders[0] {
			v.Set("sort", string(q.order))
		}
	}
	return v.Encode()
}

// link leads to a lock's page. It has the bytes of the name, whatever they are.
func link(name string) string { return "lock?" + query{lock: true, name: name}.values() }

// id is one that a browser keeps a lock's row apart by.
func id(name string) string {
	sum := sha256.Sum256([]byte(name))
	return "l" + hex.EncodeToString(sum[:8])
}

// A view is what the templates show. All its texts may be shown.
type view struct {
	Title, Server string
	Events        string // where the parts are sent that change
	Interval      string
	Refresh       int // seconds after which a browser without JavaScript asks again

	State, StateText string // live, asking or down
	At, AtFull       string // of the look that is shown
	Notes            []note
	Filter, Sort     string

	List *list // or
	Lock *lock
}

// A note is a remark on all, or a possible deadlock.
type note struct {
	Text  string
	Waits []wait
}

// A wait is one in a circle.
type wait struct {
	Who, Link, Name, For, Holder, Site, HolderSite string
}

// A list is the page that lists.
type list struct {
	Known                    bool // else nobody has looked yet, or the server has given no answer
	Columns                  []column
	Rows                     []row
	Shown, All, Left         int
	Waiting, Lost            int
	Pattern, Filter, Without string
}

// A column is one of the list. It has a link if one can sort by it.
type column struct {
	Title, Link, Class string
	Sorted             bool
	Explained          string
}

// A row is a lock of the list.
type row struct {
	ID, Link, Name, Kind, Holder, For, Waiters, Longest string
	Lost                                                int
	Free, Deadlock                                      bool
}

// view makes a view of what is known now.
func (h *Handler) view(q query) *view {
	t := h.watch
	t.mu.RLock()
	defer t.mu.RUnlock()
	v := &view{
		Title: "Locks", Server: h.text(h.o.Server), Events: "events?" + q.values(), Interval: h.o.Interval.String(),
		Refresh: max(1, int(h.o.Interval.Seconds())), Filter: printable(q.filter), Sort: string(q.order),
	}
	h.addState(v, &t.last, t.fresh())
	if t.last.Problem != "" {
		v.Notes = append(v.Notes, note{Text: h.text(t.last.Problem)})
	}
	if q.lock {
		v.Title = h.text(q.name)
		v.Lock = h.lock(q.name, &t.last, &t.histories)
		return v
	}
	if t.last.Silent > 0 {
		v.Notes = append(v.Notes, note{Text: overview.SilenceText(t.last.Silent)})
	}
	v.Notes = append(v.Notes, h.circles(t.last.Deadlocks)...)
	v.List = h.list(q, &t.last, &t.histories)
	return v
}

// addState says whether what is shown is of now.
func (h *Handler) addState(v *view, l *look, fresh bool) {
	switch {
	case !fresh:
		v.State, v.StateText = "asking", "Asking the server"
	case l.down != nil:
		v.State, v.StateText = "down", "The server has not answered since "+clock(l.since)+": "+h.text(l.down.Error())
	default:
		v.State, v.StateText = "live", "Live"
	}
	if !l.At.IsZero() {
		v.At, v.AtFull = clock(l.At), l.At.Format(time.RFC3339)
	}
}

// clock is a time of this day.
func clock(t time.Time) string { return t.Format("15:04:05 MST") }

// mostCircles is how many possible deadlocks, and how many waits of each, a page
// has.
const mostCircles = 20

func (h *Handler) circles(all [][]overview.Wait) (notes []note) {
	for _, circle := range all[:min(len(all), mostCircles)] {
		n := note{Text: fmt.Sprintf("Possible deadlock of %d callers", len(circle))}
		for i := range circle[:min(len(circle), mostCircles)] {
			w, next := &circle[i], &circle[(i+1)%len(circle)]
			n.Waits = append(n.Waits, wait{
				Who: h.text(w.Who()), Link: link(w.Name), Name: h.text(w.Name), For: overview.TTLText(w.Waited),
				Holder: h.text(next.Who()), Site: h.text(w.WaitSite), HolderSite: h.text(w.HoldSite),
			})
		}
		if left := len(circle) - mostCircles; left > 0 {
			n.Text += fmt.Sprintf("; %d of them are not shown", left)
		}
		notes = append(notes, n)
	}
	if left := len(all) - mostCircles; left > 0 {
		notes = append(notes, note{Text: fmt.Sprintf("%d more possible deadlocks", left)})
	}
	return notes
}

var asterisks = regexp.MustCompile(`\*{2,}`)

// filtered says which locks are shown: those whose name or holder has the text, or
// fits it if there is an asterisk or a question mark in it. Case does not matter.
func filtered(filter string) func(text string) bool {
	filter = asterisks.ReplaceAllString(strings.ToLower(filter), "*") // many would take long
	if !strings.ContainsAny(filter, "*?") {
		return func(text string) bool { return strings.Contains(strings.ToLower(text), filter) }
	}
	glob := strings.NewReplacer(`\*`, `.*`, `\?`, `.`).Replace(regexp.QuoteMeta(strings.ToValidUTF8(filter, "\uFFFD")))
	like, err := regexp.Compile(`(?s)^` + glob + `$`)
	if err != nil {
		return func(string) bool { return false }
	}
	return func(text string) bool { return like.MatchString(strings.ToLower(text)) }
}

func (h *Handler) list(q query, l *look, histories *overview.Histories) *list {
	p := &list{Known: !l.At.IsZero(), Columns: columns(q), All: len(l.Locks), Pattern: h.text(cmp.Or(h.o.Pattern, "*")), Filter: h.text(q.filter)}
	if p.Pattern == "*" {
		p.Pattern = ""
	}
	p.Waiting, p.Lost = histories.Totals(l.Locks)
	fits := filtered(q.filter)
	var shown []overview.Lock
	for i := range l.Locks {
		lock := &l.Locks[i]
		if fits(h.text(lock.Name)) || fits(h.text(lock.HoldersText())) {
			shown = append(shown, *lock)
		}
	}
	histories.Sort(shown, q.order)
	p.Shown = min(len(shown), mostRows)
	p.Left = len(shown) - p.Shown
	for i := range shown[:p.Shown] {
		p.Rows = append(p.Rows, h.row(&shown[i], histories.Losses(shown[i].Name)))
	}
	q.filter = ""
	p.Without = "./?" + q.values()
	return p
}

func columns(q query) []column {
	by := func(title string, order overview.Order, class, explained string) column {
		sorted := q.order == order
		q := q
		q.order = order
		return column{title, "./?" + q.values(), class, sorted, explained}
	}
	return []column{
		by("Name", overview.ByName, "", "by name"),
		{Title: "Holder"},
		{Title: "Held for", Class: "n"},
		by("Waiting", overview.ByWaiters, "n", "most waiters first"),
		by("Longest wait", overview.ByWait, "n", "longest wait first"),
		by("Lost", overview.ByLosses, "n", "most losses first"),
	}
}

func (h *Handler) row(l *overview.Lock, lost int) row {
	r := row{
		ID: id(l.Name + "\x00" + string(l.Kind)), Link: link(l.Name), Name: h.text(l.Name), Kind: h.text(string(l.Kind)), Holder: h.text(l.HoldersText()), For: overview.SpanText(l.LongestHold()),
		Waiters: l.WaitersText(), Longest: overview.SpanText(l.LongestWait()), Lost: lost, Deadlock: len(l.Deadlocks) > 0,
	}
	switch {
	case !l.Exists:
		r.Kind, r.Holder, r.Free = "", "free", true
	case !overview.IsLock(l.Kind):
		r.Kind, r.Holder, _ = strings.Cut(h.text(l.Stands()), ", ")
	case r.Holder == "":
		r.Holder, r.Free = "free", true
	}
	return r
}
