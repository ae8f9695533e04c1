package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/term"

	"github.com/redlatch/redlatch/internal/overview"
)

// A watcher lists again and again.
type watcher struct {
	*app
	interval time.Duration
	json     bool
	look     func(ctx context.Context) (overview.Listing, error)

	screen *os.File // nil if the lists follow one another
	last   overview.Listing
	at     time.Time // when that was
	down   error     // why there is no newer one
}

// untilTold returns a context that a signal ends which tells a program to end:
// what shows something until then ends with 0. A signal that was ignored when this
// process started stays ignored (nohup).
func untilTold(ctx context.Context) (context.Context, context.CancelFunc) {
	told := []os.Signal{os.Interrupt, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGTERM}
	return signal.NotifyContext(ctx, slices.DeleteFunc(told, signal.Ignored)...)
}

// run lists until a signal comes. The first list must be had: else something is
// wrong with the command line, or with the user's rights.
func (w *watcher) run(ctx context.Context) error {
	ctx, stop := untilTold(ctx)
	defer stop()
	if f, ok := w.ui.out.(*os.File); ok && !w.json && paints(f) {
		w.screen = f
	}
	tick := time.NewTicker(w.interval)
	defer tick.Stop()
	for first := true; ; first = false {
		l, err := w.look(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && first:
			return err
		}
		if err := w.show(l, err); err != nil {
			return written(err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// show shows a list, or why there is none.
func (w *watcher) show(l overview.Listing, err error) error {
	before := w.down
	if w.down = err; err == nil {
		w.last, w.at = l, time.Now()
	}
	if w.screen != nil {
		return w.repaint()
	}
	switch {
	case w.down != nil && before == nil:
		w.ui.note("%v; trying again every %v", w.down, w.interval)
	case w.down == nil && before != nil:
		w.ui.note("the server answers again")
	}
	if w.down != nil {
		return nil //nolint:nilerr // the user is told, and the next list may be had
	}
	for _, remark := range l.Remarks() {
		w.ui.note("%s", remark)
	}
	if w.json {
		return w.ui.json(l.Locks)
	}
	if _, err := fmt.Fprintln(w.ui.out, w.at.Format(time.RFC3339)); err != nil {
		return err
	}
	if err := w.ui.table(listTable(l.Locks)); err != nil {
		return err
	}
	_, err = fmt.Fprintln(w.ui.out)
	return err
}

// repaint shows the last list in the place of the one before: as much as fits.
func (w *watcher) repaint() error {
	columns, lines, err := term.GetSize(int(w.screen.Fd()))
	if err != nil || columns < 1 || lines < 2 {
		columns, lines = 80, 24
	}
	_, err = io.WriteString(w.ui.out, paintable(w.page(), columns, lines))
	return err
}

// page is what a terminal shows.
func (w *watcher) page() []string {
	var table strings.Builder
	shown := *w.ui
	shown.out = &table
	_ = shown.table(listTable(w.last.Locks)) // which a Builder takes
	head := w.at.Format(time.TimeOnly) + "  every " + w.interval.String() + ", until ctrl-C"
	if w.down != nil {
		head = fmt.Sprintf("as of %s, trying again: %v", w.at.Format(time.TimeOnly), w.ui.safe(w.down.Error()))
	}
	page := []string{head}
	for _, remark := range w.last.Remarks() {
		page = append(page, w.ui.safe(remark))
	}
	return append(page, strings.Split(strings.TrimSuffix(table.String(), "\n"), "\n")...)
}

// paintable is a page from the top left of a terminal on, with what was there
// before gone. Every line is shorter than the terminal is wide, and none is below
// it: else it would wrap, and scroll.
func paintable(page []string, columns, lines int) string {
	if most := lines - 1; len(page) > most {
		left := len(page) - most + 1
		page = append(page[:most-1:most-1], fmt.Sprintf("and %d more", left))
	}
	var b strings.Builder
	b.WriteString("\x1b[H")
	for _, line := range page {
		b.WriteString(ansi.Truncate(line, columns-1, "…") + "\x1b[K\n")
	}
	b.WriteString("\x1b[J")
	return b.String()
}
