package top

import (
	"context"
	"io"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"github.com/redlatch/redlatch/internal/overview"
)

// Options are what the view needs. All are needed.
type Options struct {
	Server   string // its address, as it is shown
	Pattern  string // of the names that are listed; "*": all
	Interval time.Duration

	List func(ctx context.Context) (overview.Listing, error)
	// Look asks for one lock, of which these are the possible deadlocks.
	Look func(ctx context.Context, name string, deadlocks [][]overview.Wait) (One, error)
	// Release releases a lock by force, if its holders are still those.
	Release func(ctx context.Context, l overview.Lock) (released bool, err error)

	// Safe is a text without what could disturb a terminal.
	Safe     func(text string) string
	Keys     io.Reader
	Terminal io.Writer
	Color    bool
}

// One is one lock by itself.
type One struct {
	Rows    [][]string // what there is to say, as words and values
	Problem string
}

// Run shows the view until its user, or ctx, ends it. The first listing has been
// had.
func Run(ctx context.Context, o Options, first overview.Listing) error {
	options := []tea.ProgramOption{tea.WithContext(ctx), tea.WithInput(o.Keys), tea.WithOutput(o.Terminal), tea.WithoutSignalHandler()}
	if !o.Color {
		options = append(options, tea.WithColorProfile(colorprofile.NoTTY)) // which has no bold either
	}
	asking, end := context.WithCancel(ctx)
	defer end() // before the program ends, so that nothing is waited for
	m := newModel(asking, o)
	m.list(first)
	_, err := tea.NewProgram(m, options...).Run()
	if ctx.Err() != nil {
		return nil
	}
	return err
}
