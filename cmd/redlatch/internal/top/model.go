package top

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/overview"
)

// A model is what the view knows; it is a [tea.Model]. Only the program's
// goroutine uses it.
type model struct {
	Options

	ctx       context.Context //nolint:containedctx // of all requests
	histories overview.Histories
	last      overview.Listing
	down      error // why there is no newer listing

	order    overview.Order
	filter   string
	typing   bool            // keys belong to the filter
	shown    []overview.Lock // those that match it, in order
	selected row             // under the cursor
	top      int             // the first line of the list, or of the lock, that is on the screen

	one     string // the lock that is shown by itself; empty: the list is
	details One
	asks    *overview.Lock // what is to be released by force, if its user says yes
	message string         // what came of that

	width, height int
}

// A row tells the lines of the list apart, from one listing to the next: what has
// a name may become a lock of another kind, and a barrier may have its name as
// well.
type row struct {
	name    string
	barrier bool
}

func rowOf(l *overview.Lock) row { return row{l.Name, l.Kind == redlatch.KindBarrier} }

// What comes to the model, beside keys.
type (
	listed struct { // answers of the server
		overview.Listing

		err error
	}
	looked struct {
		name string
		One

		err error
	}
	released struct {
		name string
		was  bool
		err  error
	}
	due struct{} // time to ask again
)

func newModel(ctx context.Context, o Options) *model {
	return &model{Options: o, ctx: ctx, order: overview.Orders[0], width: 80, height: 24}
}

// Init begins to ask.
func (m *model) Init() tea.Cmd { return m.wait() }

// wait asks again after a while.
func (m *model) wait() tea.Cmd { return tea.Tick(m.Interval, func(time.Time) tea.Msg { return due{} }) }

// ask asks for what is on the screen.
func (m *model) ask() tea.Cmd {
	name := m.one
	return func() tea.Msg {
		l, err := m.List(m.ctx)
		if err != nil || name == "" {
			return listed{l, err}
		}
		one, err := m.Look(m.ctx, name, deadlocksOf(&l, name))
		return both{listed{l, nil}, looked{name, one, err}}
	}
}

// deadlocksOf returns the possible deadlocks of a lock that is listed.
func deadlocksOf(l *overview.Listing, name string) [][]overview.Wait {
	if lock := l.Named(name); lock != nil {
		return lock.Deadlocks
	}
	return nil
}

// both are the listing and the lock that is shown by itself.
type both struct {
	listed
	looked
}

// look asks for a lock at once.
func (m *model) look(name string) tea.Cmd {
	deadlocks := deadlocksOf(&m.last, name)
	return func() tea.Msg {
		one, err := m.Look(m.ctx, name, deadlocks)
		return looked{name, one, err}
	}
}

// release releases a lock by force.
func (m *model) release(l *overview.Lock) tea.Cmd {
	return func() tea.Msg {
		was, err := m.Release(m.ctx, *l)
		return released{l.Name, was, err}
	}
}

// Update takes in what comes.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = max(msg.Width, 1), max(msg.Height, 1)
	case due:
		return m, m.ask()
	case listed:
		m.hear(msg)
		return m, m.wait()
	case both:
		m.hear(msg.listed)
		m.see(msg.looked)
		return m, m.wait()
	case looked:
		m.see(msg)
	case released:
		m.message = m.outcome(msg)
		if m.one == msg.name {
			return m, m.look(msg.name)
		}
	case tea.PasteMsg:
		if m.typing {
			m.filter += msg.Content
			m.arrange()
		}
	case tea.KeyPressMsg:
		return m, m.key(msg)
	}
	return m, nil
}

// hear takes in a listing.
func (m *model) hear(l listed) {
	if m.down = l.err; l.err == nil {
		m.list(l.Listing)
	}
}

// list shows a listing.
func (m *model) list(l overview.Listing) {
	m.last = l
	m.histories.Add(&l)
	m.arrange()
}

// see takes in a lock.
func (m *model) see(l looked) {
	if l.name != m.one {
		return // its user has gone on
	}
	if m.down = l.err; l.err == nil {
		m.details = l.One
	}
}

// outcome says what came of a release by force.
func (m *model) outcome(r released) string {
	switch {
	case r.err != nil:
		return fmt.Sprintf("%s was not released: %v", r.name, r.err)
	case r.was:
		return r.name + " is released"
	}
	return r.name + " was not held"
}

// arrange puts those that match the filter in order.
func (m *model) arrange() {
	m.shown = slices.DeleteFunc(slices.Clone(m.last.Locks), func(l overview.Lock) bool {
		return !strings.Contains(strings.ToLower(l.Name+" "+l.HoldersText()), strings.ToLower(m.filter))
	})
	m.histories.Sort(m.shown, m.order)
	if m.at() < 0 && len(m.shown) > 0 && m.one == "" {
		m.selected = rowOf(&m.shown[0])
	}
}

// at is where the cursor is; -1 if its lock is not on the list.
func (m *model) at() int {
	return slices.IndexFunc(m.shown, func(l overview.Lock) bool { return rowOf(&l) == m.selected })
}

// key does what a key is for.
func (m *model) key(msg tea.KeyPressMsg) tea.Cmd {
	key := msg.String()
	switch {
	case key == "ctrl+c":
		return tea.Quit
	case m.asks != nil:
		l := m.asks
		m.asks, m.message = nil, ""
		if key == "y" || key == "Y" {
			return m.release(l)
		}
	case m.typing:
		m.write(msg)
	default:
		m.message = ""
		return m.command(key)
	}
	return nil
}

// write changes the filter.
func (m *model) write(msg tea.KeyPressMsg) {
	switch key := msg.String(); key {
	case "enter":
		m.typing = false
	case "esc":
		m.typing, m.filter = false, ""
	case "backspace":
		if r := []rune(m.filter); len(r) > 0 {
			m.filter = string(r[:len(r)-1])
		}
	default:
		m.filter += msg.Text
	}
	m.arrange()
}

// command does what a key is for that is a command.
func (m *model) command(key string) tea.Cmd {
	switch key {
	case "q", "Q":
		return tea.Quit
	case "up", "k":
		m.move(-1)
	case "down", "j":
		m.move(1)
	case "pgup":
		m.move(-m.room())
	case "pgdown", "space":
		m.move(m.room())
	case "home", "g":
		m.move(-len(m.shown) - m.top)
	case "end", "G":
		m.move(len(m.shown) + len(m.lockLines()))
	case "esc", "left", "backspace":
		if m.one == "" {
			m.filter = ""
		}
		m.one, m.details, m.top = "", One{}, 0
		m.arrange()
	case "enter", "right":
		if m.one == "" && m.at() >= 0 {
			m.one, m.top = m.selected.name, 0
			return m.look(m.one)
		}
	case "r":
		if l := m.current(); l != nil && overview.IsLock(l.Kind) && l.Kind != redlatch.KindGroup && l.Held {
			asks := *l
			m.asks = &asks
		} else {
			m.message = "only a lock that is held can be released by force, and no group of locks"
		}
	case "s", "/":
		m.choose(key)
	}
	return nil
}

// choose changes which locks the list has.
func (m *model) choose(key string) {
	if m.one != "" {
		return
	}
	if key == "/" {
		m.typing = true
		return
	}
	m.order = overview.Orders[(slices.Index(overview.Orders, m.order)+1)%len(overview.Orders)]
	m.arrange()
}

// current is the lock under the cursor, or the one that is shown by itself; nil if
// that is not on the screen.
func (m *model) current() *overview.Lock {
	if m.one != "" {
		return m.last.Named(m.one)
	}
	if i := m.at(); i >= 0 {
		return &m.shown[i]
	}
	return nil
}

// move moves the cursor, or the lines of one lock.
func (m *model) move(by int) {
	if m.one != "" {
		m.top = max(0, min(m.top+by, len(m.lockLines())-m.room()))
		return
	}
	if len(m.shown) > 0 {
		m.selected = rowOf(&m.shown[max(0, min(m.at()+by, len(m.shown)-1))])
	}
}
