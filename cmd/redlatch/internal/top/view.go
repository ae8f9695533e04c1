package top

import (
	"fmt"
	"slices"
	"strconv"
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
	lines, foot := append(m.head(), m.body()...), m.foot()
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
	waiters, losses := m.histories.Totals(m.last.Locks)
	listed := "listed"
	if m.Pattern != "*" {
		listed = "like " + m.Pattern
	}
	title := fmt.Sprintf("%s  %d %s, %d waiting, %d lost  %s", m.last.At.Format(time.TimeOnly), len(m.last.Locks), listed, waiters, losses, m.Server)
	questions := "one question"
	if m.one != "" {
		questions = "two questions"
	}
	lines := []string{
		strong.Render(m.Safe(title)),
		faint.Render(fmt.Sprintf("%v between looks: SCAN of all keys, requests per lock, %s to clients", m.Interval, questions)),
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
		return m.told(bad, fmt.Sprintf("%s has it, and may work on without it. Take the lock away? y for yes: %s", m.asks.HoldersText(), m.asks.Name))
	case m.message != "":
		return m.told(strong, m.message)
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

// told is a text in as many lines as it takes, and half of the terminal at most.
func (m *model) told(style lipgloss.Style, text string) []string {
	lines := strings.Split(ansi.Wrap(m.Safe(text), m.width, "/:,-"), "\n")
	lines = lines[:min(len(lines), max(m.height/2, 1))]
	for i, line := range lines {
		lines[i] = style.Render(line)
	}
	return lines
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
	lines := []string{faint.Render(m.row(" ", "NAME", "HOLDER", "FOR", "WAIT", "LONGEST", "LOST"))}
	for i := m.top; i < min(len(m.shown), m.top+room); i++ {
		l := &m.shown[i]
		holder := l.HoldersText()
		switch {
		case !overview.IsLock(l.Kind) && l.Exists:
			holder = l.Stands()
		case holder == "":
			holder = "free"
		}
		mark, style := " ", lipgloss.NewStyle()
		if i == at {
			mark, style = ">", cursor
		}
		lines = append(lines, style.Render(m.row(mark, l.Name, holder, overview.SpanText(l.LongestHold()), l.WaitersText(), overview.SpanText(l.LongestWait()), fmt.Sprint(m.histories.Losses(l.Name)))))
	}
	if len(m.shown) == 0 {
		text := "no lock is held"
		if m.filter != "" {
			text = "nothing matches the filter"
		}
		lines = append(lines, faint.Render(text))
	}
	return lines
}

// row is a line of the list: the name and the holder share what the mark of the
// cursor and the numbers leave.
func (m *model) row(mark, name, holder, held, waiters, longest, lost string) string {
	numbers := fmt.Sprintf(" %7s %5s %7s %4s", held, waiters, longest, lost)
	room := max(m.width-len(mark)-len(numbers)-1, 10)
	first := room * 45 / 100
	return mark + cell(m.Safe(name), first) + " " + cell(m.Safe(holder), room-first) + numbers
}

// cell is a text of exactly that width.
func cell(text string, width int) string {
	text = ansi.Truncate(text, width, "…")
	return text + strings.Repeat(" ", max(width-ansi.StringWidth(text), 0))
}

// lockLines is what there is to say of one lock, and what was seen of it, the
// latest first.
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
	bars := func(what string, of func(overview.Point) int, text func(most int) string) string {
		points, most := h.Points[max(0, len(h.Points)-max(m.width-30, 10)):], 0
		for _, p := range points {
			most = max(most, of(p))
		}
		return fmt.Sprintf("%-8s %s at most %s", what, sparkline(points, of, most), text(most))
	}
	span := func(most int) string { return overview.SpanText(time.Duration(most) * time.Millisecond) }
	lines = append(
		lines, "",
		bars("waiters", func(p overview.Point) int { return p.Waiters }, strconv.Itoa),
		bars("wait", func(p overview.Point) int { return int(p.Longest.Milliseconds()) }, span),
		bars("hold", func(p overview.Point) int { return int(p.Held.Milliseconds()) }, span), "",
	)
	for _, n := range slices.Backward(h.Notes) {
		lines = append(lines, m.Safe(n.AtText(m.last.At)+"  "+n.Text))
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

// sparkline draws values, each as a part of the most.
func sparkline(points []overview.Point, of func(overview.Point) int, most int) string {
	levels := []rune("▁▂▃▄▅▆▇█")
	var b strings.Builder
	for _, p := range points {
		b.WriteRune(levels[of(p)*(len(levels)-1)/max(most, 1)])
	}
	return b.String()
}
