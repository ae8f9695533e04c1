package main

import (
	"fmt"
	"html"
	"os"
	"os/exec"
	"strings"
	"time"
)

const (
	recordedLines = 20
	// between is the time from one look at the screen to the next.
	between = 200 * time.Millisecond
	// lastFor is for how long the recording shows its end, before it begins again.
	lastFor = 6 * time.Second

	letter, row   = 8.0, 19 // pixels
	margin, title = 22, 40
)

// A frame is what the screen showed from a moment on.
type frame struct {
	at  time.Duration
	svg string
}

// record writes what a program shows from its start to its end, as a picture that
// plays. Where nothing may move, the picture is the program's last words.
func record(cmd *exec.Cmd, file string) error {
	t, err := newTerminal(cmd, recordedLines)
	if err != nil {
		return err
	}
	defer t.close()
	var frames []frame
	var begun time.Time // when there was something to see
	for over := false; !over; {
		select {
		case <-t.done:
			over = true
		case <-time.After(between):
		}
		t.mu.Lock()
		svg, err := t.screen.svg(), t.screen.err
		t.mu.Unlock()
		if err != nil {
			return err
		}
		if len(frames) == 0 {
			begun = time.Now()
		}
		if n := len(frames); svg != "" && (n == 0 || frames[n-1].svg != svg) {
			frames = append(frames, frame{time.Since(begun), svg})
		}
	}
	return os.WriteFile(file, []byte(film(frames)), 0o644) //nolint:gosec // everybody may read it
}

// film is a picture in which one frame after the other is moved into sight.
func film(frames []frame) string {
	width, height := margin*2+int(columns*letter), title+recordedLines*row+margin
	last := len(frames) - 1
	all := frames[last].at + lastFor
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d"><style>`, width, height)
	b.WriteString(`text{font:13.3px "DejaVu Sans Mono",Menlo,Consolas,monospace;fill:#d5dae3;white-space:pre}` +
		`.bold{font-weight:bold;fill:#fff}.faint{fill:#8d96a7}.red{fill:#ff8a80}.green{fill:#9ece6a}` +
		`@keyframes play{`)
	for i, f := range frames {
		fmt.Fprintf(&b, "%.2f%%{transform:translateX(-%dpx)}", 100*f.at.Seconds()/all.Seconds()*float64(min(i, 1)), i*width)
	}
	fmt.Fprintf(&b, "100%%{transform:translateX(-%dpx)}}", last*width)
	fmt.Fprintf(&b, "#film{animation:play %.1fs steps(1,end) infinite}", all.Seconds())
	fmt.Fprintf(&b, "@media (prefers-reduced-motion:reduce){#film{animation:none;transform:translateX(-%dpx)}}</style>", last*width)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" rx="10" fill="#1a1e26"/>`, width, height)
	for i := range 3 {
		fmt.Fprintf(&b, `<circle cx="%d" cy="18" r="5.5" fill="#454c5a"/>`, margin+i*19)
	}
	b.WriteString(`<g id="film">`)
	for i, f := range frames {
		fmt.Fprintf(&b, `<g transform="translate(%d 0)">%s</g>`, i*width, f.svg)
	}
	b.WriteString("</g></svg>\n")
	return b.String()
}

// svg is the lines of the screen as texts. Letters of one look stand together,
// where the screen has them: fonts differ in their width.
func (s *screen) svg() string {
	var b strings.Builder
	for i, line := range s.cells[:s.lines] {
		for from := 0; from < columns; {
			to := from + 1
			for to < columns && line[to].style == line[from].style && (line[to].r != ' ' || line[to-1].r != ' ') {
				to++
			}
			var text strings.Builder
			for _, c := range line[from:to] {
				text.WriteRune(c.r)
			}
			if words := strings.TrimRight(text.String(), " "); strings.TrimSpace(words) != "" {
				class := ""
				if c := line[from].style.classes(); c != "" {
					class = fmt.Sprintf(` class="%s"`, c)
				}
				fmt.Fprintf(&b, `<text x="%.0f" y="%d"%s>%s</text>`, margin+letter*float64(from), title+14+i*row, class, html.EscapeString(words))
			}
			from = to
		}
	}
	return b.String()
}
