package demo

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
)

// The few escape sequences that the view needs. Every terminal since the VT100
// knows them; the alternate screen is xterm's, and others ignore it.
const (
	altScreen  = "\x1b[?1049h\x1b[?25l" // and no cursor
	mainScreen = "\x1b[?25h\x1b[?1049l"
	home       = "\x1b[H"
	clearLine  = "\x1b[K"
	clearBelow = "\x1b[J"

	bold  = "\x1b[1m"
	dim   = "\x1b[2m"
	green = "\x1b[32m"
	red   = "\x1b[31m"
	reset = "\x1b[0m"
)

// A view is the live picture on a terminal.
type view struct {
	watchdog time.Duration // which it shows

	out, keys *os.File
	color     bool
	saved     *term.State
	quit      chan struct{} // closed when q or Ctrl-C is typed
	close     func()        // gives the terminal back; may be called twice
}

// openView takes over the terminal.
func openView(out, keys *os.File, color bool) (*view, error) {
	saved, err := term.MakeRaw(int(keys.Fd()))
	if err != nil {
		return nil, fmt.Errorf("preparing the terminal: %w", err)
	}
	v := &view{out: out, keys: keys, color: color, saved: saved, quit: make(chan struct{})}
	v.close = sync.OnceFunc(func() {
		_, _ = out.WriteString(mainScreen)
		_ = term.Restore(int(keys.Fd()), saved)
	})
	_, _ = out.WriteString(altScreen)
	// It reads until the process ends: a read of a terminal cannot be
	// interrupted.
	go func() {
		key := make([]byte, 1)
		for {
			if n, err := keys.Read(key); err != nil || n == 0 {
				return
			}
			switch key[0] {
			case 'q', 'Q', 3: // 3 is what Ctrl-C sends in raw mode
				close(v.quit)
				return
			}
		}
	}()
	return v, nil
}

// paint gives text a colour where colours are wanted.
func (v *view) paint(style, text string) string {
	if !v.color {
		return text
	}
	return style + text + reset
}

// draw replaces the picture.
func (v *view) draw(s snapshot, ttl time.Duration, overlaps int) error {
	width, height, err := term.GetSize(int(v.out.Fd()))
	if err != nil || width < 1 || height < 1 {
		width, height = 80, 24
	}
	lines := v.lines(s, ttl, overlaps, height)
	var b strings.Builder
	b.WriteString(home)
	for i, line := range lines[:min(len(lines), height)] {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(v.fit(line, width) + clearLine)
	}
	b.WriteString(clearBelow)
	_, err = v.out.WriteString(b.String())
	return err
}

// A line is text with one style for all of it: so it can be cut to the width of
// the screen without cutting an escape sequence.
type line struct{ style, text string }

func (v *view) fit(l line, width int) string {
	if utf8.RuneCountInString(l.text) > width {
		l.text = string([]rune(l.text)[:width])
	}
	if l.style == "" {
		return l.text
	}
	return v.paint(l.style, l.text)
}

// lines is the picture; what does not fit into height is left out, oldest
// events first.
func (v *view) lines(s snapshot, ttl time.Duration, overlaps, height int) []line {
	most, holder, dead := 1, 0, false
	for _, r := range s.rows {
		most = max(most, r.acquired)
		if r.state == holding {
			holder = r.id
		}
		dead = dead || r.state == killed
	}
	lock := line{bold, fmt.Sprintf("  lock %q: held by worker %d", lockName, holder)}
	switch {
	case holder == 0 && ttl > 0 && dead:
		lock = line{red, fmt.Sprintf("  lock %q: held by a dead worker", lockName)}
	case holder == 0 && ttl > 0:
		lock = line{dim, fmt.Sprintf("  lock %q: changing hands", lockName)}
	case holder == 0:
		lock = line{dim, fmt.Sprintf("  lock %q: free", lockName)}
	}
	if ttl > 0 {
		lock.text += fmt.Sprintf(", its lease in Redis ends in %.2f s", ttl.Seconds())
	}
	all := []line{
		{bold, fmt.Sprintf("redlatch demo   %5.1f s   watchdog %v   q quits", s.elapsed.Seconds(), v.watchdog)},
		{},
		lock,
		{},
		{dim, "  WORKER  PID      STATE                      ACQUISITIONS"},
	}
	for _, r := range s.rows {
		all = append(all, r.line(s.at, most))
	}
	verdict := line{green, fmt.Sprintf("  %s, %s; %s in the workers' own records", count(s.acquired, "acquisition", "s"), count(s.losses, "loss", "es"), count(overlaps, "violation", "s"))}
	if overlaps > 0 {
		verdict.style = red
	}
	all = append(all, line{}, verdict, line{})
	room := max(height-len(all), 0)
	for _, text := range s.lines[max(len(s.lines)-room, 0):] {
		all = append(all, line{text: text})
	}
	return all
}

// line is a worker's row of the picture.
func (r *row) line(now time.Time, most int) line {
	l := line{}
	state := string(r.state)
	switch r.state {
	case holding:
		l.style = green
		state = fmt.Sprintf("HOLDS    %6.2f s", now.Sub(r.since).Seconds())
	case waiting:
		state = fmt.Sprintf("waiting  %6.2f s", now.Sub(r.since).Seconds())
	case killed:
		l.style = red
	}
	if r.cutOff {
		l.style = red
		state += "  cut off"
	}
	const bar = 24
	l.text = fmt.Sprintf("  %-6d  %-7d  %-25s  %5d %s", r.id, r.pid, state, r.acquired, strings.Repeat("█", r.acquired*bar/most))
	return l
}
