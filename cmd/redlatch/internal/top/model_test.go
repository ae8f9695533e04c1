package top

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/redlatch/redlatch/internal/overview"
)

// A screen is a model with what a user sees of it.
type screen struct {
	*testing.T

	*model
}

// newScreen shows locks on a terminal of 80 columns and 24 lines.
func newScreen(t *testing.T, locks ...overview.Lock) *screen {
	t.Helper()
	s := &screen{t, newModel(t.Context(), Options{
		Server: "redis://host-1", Pattern: "*", Interval: 5 * time.Second,
		Safe: func(text string) string { return strings.ReplaceAll(text, "\x1b", `\x1b`) },
		Look: func(_ context.Context, name string, _ [][]overview.Wait) (One, error) {
			return One{Rows: [][]string{{"name", name}, {"waiter 1", strings.Repeat("shipping@host-8 pid 77, at /src/pay.go:12 ", 5)}}}, nil
		},
	})}
	s.list(overview.Listing{At: time.Unix(1_700_000_000, 0), Locks: locks})
	return s
}

// does sends a message, and what comes of it.
func (s *screen) does(msg tea.Msg) {
	if _, cmd := s.Update(msg); cmd != nil {
		s.Update(cmd())
	}
}

// types sends keys: names of keys, or letters.
func (s *screen) types(keys ...string) {
	codes := map[string]tea.Key{
		"enter": {Code: tea.KeyEnter}, "esc": {Code: tea.KeyEscape}, "down": {Code: tea.KeyDown}, "up": {Code: tea.KeyUp},
		"pgdown": {Code: tea.KeyPgDown}, "end": {Code: tea.KeyEnd}, "home": {Code: tea.KeyHome}, "backspace": {Code: tea.KeyBackspace},
	}
	for _, key := range keys {
		k, ok := codes[key]
		if !ok {
			k = tea.Key{Code: []rune(key)[0], Text: key}
		}
		s.does(tea.KeyPressMsg(k))
	}
}

// text is what the user sees. It fits.
func (s *screen) text() string {
	s.Helper()
	lines := strings.Split(ansi.Strip(s.View().Content), "\n")
	if len(lines) != s.height {
		s.Errorf("%d lines on a terminal of %d", len(lines), s.height)
	}
	for _, line := range lines {
		if ansi.StringWidth(line) > s.width {
			s.Errorf("%d columns on a terminal of %d: %q", ansi.StringWidth(line), s.width, line)
		}
	}
	return strings.Join(lines, "\n")
}

// shows expects texts in this order.
func (s *screen) shows(texts ...string) {
	s.Helper()
	all := s.text()
	rest := all
	for _, text := range texts {
		i := strings.Index(rest, text)
		if i < 0 {
			s.Fatalf("%q is not there, or not after the one before:\n%s", text, all)
		}
		rest = rest[i+len(text):]
	}
}

func (s *screen) hides(text string) {
	s.Helper()
	if all := s.text(); strings.Contains(all, text) {
		s.Errorf("%q is there:\n%s", text, all)
	}
}

func held(name, by string, forMs int64, waits ...int64) overview.Lock {
	l := overview.Lock{Name: name, Kind: "lock", Held: true, Exists: true, Holders: []overview.Holder{
		{Owner: "owner of " + name, Told: overview.Told{By: by, For: &forMs}},
	}}
	for _, ms := range waits {
		l.Waiting = append(l.Waiting, overview.Claim{Told: overview.Told{By: "shipping@host-8", For: &ms}})
	}
	return l
}

func TestTheWorstComesFirst(t *testing.T) {
	t.Parallel()
	lost := held("c", "billing@host-7", 100)
	lost.Lost = []overview.Claim{{Client: "u", Owner: "u:1", Reason: "expired"}}
	s := newScreen(t, held("a", "billing@host-7", 12_300), held("b", "billing@host-7", 70_000, 1000, 2000), lost, held("d", "billing@host-7", 5_000_000, 60_000))
	s.shows("4 listed, 3 waiting, 1 lost  redis://host-1", "5s between looks: SCAN", "\n NAME", "\n>b ", "1m10s     2    2.0s    0", "\n d ", "1h23m     1   1m00s", "\n a ", "12.3s     -", "\n c ", "sort: waiters")
	s.types("s")
	s.shows("\n d ", "\n>b ", "\n a ", "sort: wait")
	s.types("s")
	s.shows("\n c ", "-    1", "\n a ", "\n>b ", "\n d ", "sort: losses")
	s.types("s")
	s.shows("\n a ", "\n>b ", "\n c ", "\n d ", "sort: name")
}

func TestAThousandLocks(t *testing.T) {
	t.Parallel()
	var locks []overview.Lock
	for i := range 1000 {
		locks = append(locks, held(fmt.Sprintf("orders:%04d:%s", i, strings.Repeat("x", i%60)), fmt.Sprintf("billing@host-%d", i), 1000))
	}
	s := newScreen(t, locks...)
	s.shows("1000 listed", "orders:0000", "orders:0019")
	s.types("end")
	s.shows("orders:0999")
	s.types("home", "pgdown", "down")
	if s.selected.name[:11] != "orders:0021" {
		t.Errorf("the cursor is at %s", s.selected.name)
	}
	s.types("/", "h", "o", "s", "t", "-", "9", "9", "9")
	s.shows("orders:0999", "filter: host-999")
	s.hides("orders:0998")
	s.types("enter", "q") // a command again
	s.types("/", "backspace", "esc")
	s.shows("orders:0999")
	s.types("home")
	s.shows("orders:0000")
	s.types("/", "q")
	s.does(tea.PasteMsg{Content: "x"})
	s.types("enter")
	s.shows("nothing matches the filter", "/ filter: qx")
	s.types("r") // nothing that is not on the screen is released
	s.shows("only a lock that is held")
	s.types("esc")
	s.shows("orders:0000")

	for _, size := range []tea.WindowSizeMsg{{Width: 20, Height: 5}, {Width: 1, Height: 1}, {Width: 300, Height: 100}} {
		s.does(size)
		s.types("end", "home")
		s.text()
		s.types("enter")
		s.text()
		s.types("esc")
	}
}

// A name cannot move the cursor, and a wide one does not move the columns.
func TestNamesAreText(t *testing.T) {
	t.Parallel()
	s := newScreen(t, held("a\x1b[2J", "b\x1b]0;x", 1000), held("ＡＢＣＤＥＦＧＨＩＪＫＬＭＮＯＰ", "ü", 1000))
	if text := s.View().Content; strings.Contains(text, "\x1b[2J") || strings.Contains(text, "\x1b]0;") {
		t.Errorf("%q", text)
	}
	s.shows(`a\x1b[2J`, `b\x1b]0;x`, "1.0s", "ＡＢＣ", "ü", "1.0s")
}

// One lock has its rows, whole, and what was seen of it.
func TestOneLock(t *testing.T) {
	t.Parallel()
	s := newScreen(t, held("a", "billing@host-7", 1000), held("b", "billing@host-7", 1000, 1))
	s.types("down", "enter")
	s.shows("name      a", "waiter 1  shipping@host-8", "pay.go:12", "pay.go:12", "pay.go:12", "waiters  ▁", "held by billing@host-7", "esc back")
	next := held("a", "shipping@host-8", 10, 5, 6)
	next.Holders[0].Owner = "somebody else"
	s.Update(both{listed{Listing: overview.Listing{At: time.Unix(1_700_000_005, 0), Locks: []overview.Lock{next}}}, looked{"a", One{Rows: [][]string{{"name", "a"}, {"by", "shipping"}}}, nil}})
	s.shows("by    shipping", "▁█ at most 2", "held by shipping@host-8", "held by billing@host-7")
	s.does(looked{"b", One{Rows: [][]string{{"name", "b"}}}, nil}) // an answer that comes too late
	s.hides("name  b")
	s.types("esc")
	s.shows("NAME", "a ")
}

// A barrier may have the name of a lock: the cursor stayed there, and the lock
// could not be released.
func TestTheCursorPassesABarrierThatHasTheNameOfALock(t *testing.T) {
	t.Parallel()
	none := 0
	barrier := overview.Lock{Name: "a", Kind: "barrier", Exists: true, Count: &none, Total: &none}
	s := newScreen(t, barrier, held("a", "billing@host-7", 1000), held("b", "shipping@host-8", 1000))
	s.types("s", "s", "s", "home", "r")
	s.shows("only a lock that is held")
	s.types("down", "r")
	s.shows("billing@host-7 has it, and may work on without it. Take the lock away? y for", "a")
	s.types("n", "enter", "r") // what is shown under a name is the lock
	s.shows("billing@host-7 has it")
	s.types("n", "esc", "down", "r")
	s.shows("shipping@host-8 has it")
	s.types("n", "up", "up", "r")
	s.shows("only a lock that is held")
	s.types("home", "end", "r")
	s.shows("shipping@host-8 has it")
}

// Nothing is released without a yes, and nobody but the one that was named.
func TestAReleaseByForceAsksAndNamesTheHolder(t *testing.T) {
	t.Parallel()
	free := overview.Lock{Name: "free", Kind: "lock"}
	s := newScreen(t, held("orders", "billing@host-7", 1000, 1), free)
	var asked []overview.Lock
	var fails error
	s.Release = func(_ context.Context, l overview.Lock) (bool, error) {
		asked = append(asked, l)
		return fails == nil, fails
	}
	for _, no := range []string{"n", "esc", "enter"} {
		s.types("r")
		s.shows("billing@host-7 has it, and may work on without it. Take the lock away? y for", "orders")
		s.types(no)
		s.hides("Take the lock away")
	}
	if s.one != "" || len(asked) != 0 {
		t.Fatalf("%q, %+v", s.one, asked)
	}
	s.types("r")
	s.list(overview.Listing{Locks: []overview.Lock{held("orders", "shipping@host-8", 1)}})
	s.shows("billing@host-7 has it, and may") // what was asked for
	s.types("y")
	s.shows("orders is released")
	fails = errors.New("shipping@host-8 has it now")
	s.types("enter", "r", "y")
	s.shows("orders was not released: shipping@host-8 has it now")
	if len(asked) != 2 || asked[0].Holders[0].By != "billing@host-7" {
		t.Errorf("%+v", asked)
	}
	s.list(overview.Listing{Locks: []overview.Lock{free}})
	s.types("esc", "home", "r")
	s.shows("only a lock that is held can be released by force")

	s.list(overview.Listing{Locks: []overview.Lock{held(strings.Repeat("orders:", 30)+"end", "billing@host-7 pid 4121", 1)}})
	s.types("home", "r")
	s.shows("billing@host-7 pid 4121 has it", "y for", "orders:", ":end")
}

// The last list stays while the server is away.
func TestAServerThatGoesAwayAndComesBack(t *testing.T) {
	t.Parallel()
	s := newScreen(t, held("orders", "billing@host-7", 1000))
	s.hear(listed{err: errors.New("redis://host-1 is \x1b[2J down")})
	s.shows(`trying again: redis://host-1 is \x1b[2J down`, "orders ", "billing@host-7")
	s.hear(listed{Listing: overview.Listing{Locks: []overview.Lock{held("stock", "billing@host-7", 1000)}}})
	s.hides("trying again")
	s.shows("stock ")
	s.hides("orders ")
}

// What is wrong with all of it is said, and leaves room for the list.
func TestRemarks(t *testing.T) {
	t.Parallel()
	s := newScreen(t)
	l := overview.Listing{Silent: 2, Problem: "clients could not be asked", Locks: []overview.Lock{held("orders", "billing@host-7", 1)}}
	for range 50 {
		l.Deadlocks = append(l.Deadlocks, []overview.Wait{{By: "billing", Name: "a"}, {By: "shipping", Name: "b"}})
	}
	s.list(l)
	s.shows("clients could not be asked", "2 clients gave no answer", "possible deadlock: billing waits for a, shipping waits for b", "more remarks", "orders ")
	s.list(overview.Listing{})
	s.shows("no lock is held")
}
