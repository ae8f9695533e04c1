package demo

import (
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

func examplePicture() picture {
	now := time.Unix(1_700_000_000, 0)
	return picture{
		snapshot: snapshot{
			at: now, elapsed: 3500 * time.Millisecond, acquired: 12, losses: 1,
			rows: []row{
				{id: 1, pid: 101, state: waiting, since: now.Add(-1500 * time.Millisecond), acquired: 8},
				{id: 2, pid: 102, state: holding, since: now.Add(-20 * time.Millisecond), acquired: 4},
				{id: 3, pid: 103, state: waiting, since: now, cutOff: true},
			},
			events: []string{"  0.00 s  first", "  1.00 s  second", "  2.00 s  third"},
		},
		watchdog: 2 * time.Second,
		ttl:      1990 * time.Millisecond,
	}
}

// text is what a picture says, without its styles.
func (p *picture) text(height int) string {
	return ansi.Strip(strings.Join(p.lines(height), "\n"))
}

func TestPicture(t *testing.T) {
	t.Parallel()
	p := examplePicture()
	want := `redlatch demo     3.5 s   watchdog 2s   q quits

  lock "demo": held by worker 2, its lease in Redis ends in 1.99 s

  WORKER  PID      STATE                       ACQUISITIONS
  1       101      waiting    1.50 s               8 ` + strings.Repeat("█", 24) + `
  2       102      HOLDS      0.02 s               4 ` + strings.Repeat("█", 12) + `
  3       103      waiting    0.00 s  cut off      0 ` + `

  12 acquisitions, 1 loss; 0 violations in the workers' own records

  0.00 s  first
  1.00 s  second
  2.00 s  third`
	if got := p.text(24); got != want {
		t.Errorf("\n%s\nwant\n%s", got, want)
	}
	// The latest events are those that are shown where there is no room for all.
	for height, first := range map[int]int{14: 0, 13: 1, 12: 2, 11: 3, 1: 3} {
		got := p.text(height)
		for i, event := range p.events {
			if strings.Contains(got, event) != (i >= first) {
				t.Errorf("at height %d, %q:\n%s", height, event, got)
			}
		}
	}
}

func TestPictureOfTheLock(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*picture){
		"held by worker 2, its lease in Redis ends in 1.99 s": func(*picture) {},
		"held by worker 2": func(p *picture) { p.ttl = 0 },
		"changing hands, its lease in Redis ends in 1.99 s": func(p *picture) { p.rows[1].state = between },
		"free": func(p *picture) { p.rows[1].state, p.ttl = between, 0 },
		"held by a dead worker, its lease in Redis ends in 1.99 s": func(p *picture) { p.rows[1].state = killed },
	} {
		p := examplePicture()
		change(&p)
		if got := ansi.Strip(p.lock()); got != fmt.Sprintf("  lock %q: %s", lockName, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// The program keeps the newest picture and the size of the terminal, and ends when
// its user wants that.
func TestScreen(t *testing.T) {
	t.Parallel()
	var s tea.Model = screen{picture: examplePicture()}
	s, _ = s.Update(tea.WindowSizeMsg{Width: 80, Height: 12})
	next := examplePicture()
	next.overlaps = 2
	s, _ = s.Update(next)
	shown := s.View()
	if text := ansi.Strip(shown.Content); !shown.AltScreen || !strings.Contains(text, "2 violations") || strings.Contains(text, "second") {
		t.Errorf("%+v", shown)
	}
	for key, quits := range map[tea.Key]bool{
		{Code: 'q', Text: "q"}:             true,
		{Code: 'q', Text: "Q"}:             true,
		{Code: 'c', Mod: tea.ModCtrl}:      true,
		{Code: 'x', Text: "x"}:             false,
		{Code: tea.KeyEscape}:              false,
		{Code: 'z', Mod: tea.ModCtrl}:      false,
		{Code: 'q', Mod: tea.ModAlt}:       false,
		{Code: tea.KeyEnter, Text: "\r\n"}: false,
	} {
		if _, cmd := s.Update(tea.KeyPressMsg(key)); (cmd != nil) != quits {
			t.Errorf("%q: quits: %t", key, cmd != nil)
		}
	}
}
