package demo

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/colorprofile"
)

// A view is the live picture on a terminal.
type view struct {
	program *tea.Program
	done    chan struct{} // closed when the program has given the terminal back
	err     error         // why it ended by itself; nil if its user asked for that
}

// openView takes over the terminal until close.
func openView(o Options, first picture) *view {
	options := []tea.ProgramOption{
		tea.WithInput(o.Keys), tea.WithOutput(o.Terminal),
		tea.WithoutSignalHandler(), // signals end the demo, and with it the view
	}
	if !o.Color {
		options = append(options, tea.WithColorProfile(colorprofile.NoTTY)) // which has no bold either
	}
	v := &view{program: tea.NewProgram(screen{picture: first}, options...), done: make(chan struct{})}
	go func() {
		defer close(v.done)
		_, v.err = v.program.Run()
	}()
	return v
}

// show replaces the picture.
func (v *view) show(p picture) { v.program.Send(p) }

// close gives the terminal back, unless the program has done that before.
func (v *view) close() {
	v.program.Quit()
	<-v.done
}

// A picture is what the view shows at one moment.
type picture struct {
	snapshot
	watchdog time.Duration
	ttl      time.Duration // of the lock in Redis
	overlaps int
}

// A screen is a picture on a terminal; it is the view's [tea.Model].
type screen struct {
	picture
	height int
}

// Init does nothing: the first picture is there from the start.
func (s screen) Init() tea.Cmd { return nil }

// Update takes in a new picture, the size of the terminal, and keys.
func (s screen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case picture:
		s.picture = msg
	case tea.WindowSizeMsg:
		s.height = msg.Height
	case tea.KeyPressMsg:
		switch msg.String() {
		case "q", "Q", "ctrl+c":
			return s, tea.Quit
		}
	}
	return s, nil
}

// View shows the picture on a screen of its own, which cuts lines that are too
// long.
func (s screen) View() tea.View {
	v := tea.NewView(strings.Join(s.lines(s.height), "\n"))
	v.AltScreen = true
	return v
}

var (
	strong = lipgloss.NewStyle().Bold(true)
	faint  = lipgloss.NewStyle().Faint(true)
	good   = lipgloss.NewStyle().Foreground(lipgloss.Green)
	bad    = lipgloss.NewStyle().Foreground(lipgloss.Red)
)

// lines is the picture in lines; the events that do not fit into height are left
// out, the oldest first.
func (p *picture) lines(height int) []string {
	all := []string{
		strong.Render(fmt.Sprintf("redlatch demo   %5.1f s   watchdog %v   q quits", p.elapsed.Seconds(), p.watchdog)),
		"",
		p.lock(),
		"",
		faint.Render("  WORKER  PID      STATE                       ACQUISITIONS"),
	}
	most := 1
	for _, r := range p.rows {
		most = max(most, r.acquired)
	}
	for _, r := range p.rows {
		all = append(all, r.line(p.at, most))
	}
	verdict := good
	if p.overlaps > 0 {
		verdict = bad
	}
	all = append(all, "", verdict.Render(fmt.Sprintf("  %s, %s; %s in the workers' own records",
		count(p.acquired, "acquisition", "s"), count(p.losses, "loss", "es"), count(p.overlaps, "violation", "s"))), "")
	room := max(height-len(all), 0)
	return append(all, p.events[max(len(p.events)-room, 0):]...)
}

// lock is the line of the lock.
func (p *picture) lock() string {
	holder, dead := 0, false
	for _, r := range p.rows {
		if r.state == holding {
			holder = r.id
		}
		dead = dead || r.state == killed
	}
	text := fmt.Sprintf("  lock %q: ", lockName)
	style := faint
	switch {
	case holder != 0:
		style, text = strong, text+fmt.Sprintf("held by worker %d", holder)
	case p.ttl > 0 && dead:
		style, text = bad, text+"held by a dead worker"
	case p.ttl > 0:
		text += "changing hands"
	default:
		text += "free"
	}
	if p.ttl > 0 {
		text += fmt.Sprintf(", its lease in Redis ends in %.2f s", p.ttl.Seconds())
	}
	return style.Render(text)
}

// line is a worker's line of the picture.
func (r *row) line(now time.Time, most int) string {
	style := lipgloss.NewStyle()
	state := string(r.state)
	switch r.state {
	case holding:
		style = good
		state = fmt.Sprintf("HOLDS    %6.2f s", now.Sub(r.since).Seconds())
	case waiting:
		state = fmt.Sprintf("waiting  %6.2f s", now.Sub(r.since).Seconds())
	case killed:
		style = bad
	}
	if r.cutOff {
		style = bad
		state += "  cut off"
	}
	const bar = 24
	return style.Render(fmt.Sprintf("  %-6d  %-7d  %-26s  %5d %s", r.id, r.pid, state, r.acquired, strings.Repeat("█", r.acquired*bar/most)))
}
