package top

import (
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/redlatch/redlatch/internal/overview"
)

var (
	strong = lipgloss.NewStyle().Bold(true)
	faint  = lipgloss.NewStyle().Faint(true)
	bad    = lipgloss.NewStyle().Foreground(lipgloss.Red)
	cursor = lipgloss.NewStyle().Reverse(true)
)

// View shows what is known, on a screen of its own.
func (m *model) View() tea.View {
	v := tea.NewView(strings.Join(m.screen(), "\n"))
	v.AltScreen = true
	return v
}

// screen is as many lines as the terminal has, none of them wider.
func (m *model) screen() []string {
	lines := append(m.head(), m.body()...)
	foot := m.foot()
	most := max(m.height-len(foot), 0)
	for len(lines) < most {
		lines = append(lines, "")
	}
	lines = append(lines[:most], foot...)
	for i, line := range lines {
		lines[i] = ansi.Truncate(line, m.width, "…")
	}
	return lines[max(0, len(lines)-m.height):]
}

// room is how many lines there are for the list, or for the lock.
func (m *model) room() int {
	columns := 1 // the titles of the list
	if m.one != "" {
		columns = 0
	}
	return max(m.height-len(m.head())-len(m.foot())-columns, 1)
}

// head is what is known of all, and how.
func (m *model) head() []string {
	waiters, losses := 0, 0
	for i := range m.last.Locks {
		n, _ := m.last.Locks[i].Waiters()
		waiters += n
		losses += m.histories.Losses(m.last.Locks[i].Name)
	}
	title := fmt.Sprintf("%s  %d listed, %d waiting, %d lost  %s", m.last.At.Format(time.TimeOnly), len(m.last.Locks), waiters, losses, m.Server)
	lines := []string{
		strong.Render(m.Safe(title)),
		faint.Render(m.Safe(fmt.Sprintf("every %v: SCAN of all keys, a few requests a lock, one question to clients", m.Interval))),
	}
	if m.down != nil {
		lines = append(lines, bad.Render(m.Safe(fmt.Sprintf("trying again: %v", m.down))))
	}
	for _, remark := range m.last.Remarks() {
		lines = append(lines, bad.Render(m.Safe(remark)))
	}
	if most := max(m.height/3, 2); len(lines) > most {
		lines = append(lines[:most-1], bad.Render(fmt.Sprintf("and %d more remarks", len(lines)-most+1)))
	}
	return lines
}

// foot is what there is to do.
func (m *model) foot() []string {
	switch {
	case m.asks != nil:
		return []string{bad.Render(m.Safe(m.question()))}
	case m.message != "":
		return []string{strong.Render(m.Safe(m.message))}
	case m.typing:
		return []string{m.Safe("filter: "+m.filter) + "▏ enter keeps it, esc drops it"}
	case m.one != "":
		return []string{faint.Render("esc back  ↑↓ scroll  r release by force  q quit")}
	}
	text := fmt.Sprintf("↑↓ enter: one lock  s sort: %s  / filter", m.order)
	if m.filter != "" {
		text += ": " + m.filter
	}
	return []string{faint.Render(m.Safe(text + "  r release by force  q quit"))}
}

// question asks whether a lock is to be released by force, and says whose it is.
func (m *model) question() string {
	return fmt.Sprintf("take %s away from %s, who may work on without it? y for yes", m.asks.Name, m.asks.HoldersText())
}

// body is the list, or one lock.
func (m *model) body() []string {
	if m.one != "" {
		lines := m.lockLines()
		m.top = max(0, min(m.top, len(lines)-m.room()))
		return lines[m.top:min(len(lines), m.top+m.room())]
	}
	at, room := m.at(), m.room()
	m.top = max(0, min(m.top, len(m.shown)-room))
	if at >= 0 {
		m.top = min(max(m.top, at-room+1), at)
	}
	lines := []string{faint.Render(m.row("NAME", "HOLDER", "FOR", "WAIT", "LONGEST", "LOST"))}
	for i := m.top; i < min(len(m.shown), m.top+room); i++ {
		l := &m.shown[i]
		n, known := l.Waiters()
		waiters := "-"
		if known {
			waiters = fmt.Sprint(n)
		}
		holder := l.HoldersText()
		switch {
		case !overview.IsLock(l.Kind) && l.Exists:
			holder = l.Stands()
		case holder == "":
			holder = "free"
		}
		line := m.row(l.Name, holder, spanText(l.LongestHold()), waiters, spanText(l.LongestWait()), fmt.Sprint(m.histories.Losses(l.Name)))
		if i == at {
			line = cursor.Render(line)
		}
		lines = append(lines, line)
	}
	if len(m.shown) == 0 {
		lines = append(lines, faint.Render("no lock is held"))
	}
	return lines
}

// row is a line of the list: the name and the holder share what the numbers leave.
func (m *model) row(name, holder, held, waiters, longest, lost string) string {
	numbers := fmt.Sprintf("  %7s %5s %7s %5s", held, waiters, longest, lost)
	room := max(m.width-1-len(numbers)-2, 10) // one for the cursor that is shown without colours
	first := room * 45 / 100
	return cell(m.Safe(name), first) + "  " + cell(m.Safe(holder), room-first) + numbers
}

// cell is a text of exactly that width.
func cell(text string, width int) string {
	text = ansi.Truncate(text, width, "…")
	return text + strings.Repeat(" ", max(width-ansi.StringWidth(text), 0))
}

// spanText is a time of at most seven characters.
func spanText(d time.Duration) string {
	switch {
	case d == 0:
		return "-"
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 1000*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd", int(d.Hours())/24)
}

// lockLines is what there is to say of one lock, and what was seen of it, the latest first.
func (m *model) lockLines() []string {
	width := 0
	for _, row := range m.details.Rows {
		width = max(width, ansi.StringWidth(row[0]))
	}
	var lines []string
	for _, row := range m.details.Rows {
		lines = append(lines, m.wrapped(row[0], row[1], width)...)
	}
	if m.details.Problem != "" {
		lines = append(lines, bad.Render(m.Safe(m.details.Problem)))
	}
	if len(m.details.Rows) == 0 {
		lines = append(lines, faint.Render("asking for "+m.Safe(m.one)))
	}
	h := m.histories.Of(m.one)
	if h == nil {
		return lines
	}
	lines = append(lines, "", strong.Render("waiters  "+sparkline(h.Points, func(p overview.Point) float64 { return float64(p.Waiters) })),
		strong.Render("wait     "+sparkline(h.Points, func(p overview.Point) float64 { return p.Longest.Seconds() })),
		strong.Render("hold     "+sparkline(h.Points, func(p overview.Point) float64 { return p.Held.Seconds() })), "")
	for _, n := range slices.Backward(h.Notes) {
		lines = append(lines, m.Safe(n.At.Format(time.TimeOnly)+"  "+n.Text))
	}
	return lines
}

// wrapped is a word and its value, in as many lines as that takes.
func (m *model) wrapped(word, value string, width int) []string {
	room := max(m.width-width-2, 10)
	lines := strings.Split(ansi.Wrap(m.Safe(value), room, "/:,-"), "\n")
	for i, line := range lines {
		if i > 0 {
			word = ""
		}
		lines[i] = faint.Render(cell(m.Safe(word), width)) + "  " + line
	}
	return lines
}

// sparkline draws the latest values: each as part of the largest, which stands behind them.
func sparkline(points []overview.Point, of func(overview.Point) float64) string {
	const bars, most = "▁▂▃▄▅▆▇█", 60
	points = points[max(0, len(points)-most):]
	largest := 0.0
	for _, p := range points {
		largest = max(largest, of(p))
	}
	var b strings.Builder
	levels := []rune(bars)
	for _, p := range points {
		level := 0
		if largest > 0 {
			level = int(of(p) / largest * float64(len(levels)-1))
		}
		b.WriteRune(levels[level])
	}
	return fmt.Sprintf("%s  at most %.4g", b.String(), largest)
}
