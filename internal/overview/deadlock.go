package overview

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
)

// Standing is for how long callers have to wait for one another before that is
// called a possible deadlock: what clients say of one moment may be of several. It
// is the Config.SlowWait of the client that asks.
const Standing = 2 * time.Second

// A Wait is one of a circle of waits: its holder is the owner of the next one.
type Wait struct {
	By       string `json:"by"`
	Client   string `json:"client"`
	Owner    string `json:"owner"`
	Name     string `json:"name"`
	Holder   string `json:"holder"`
	Waited   int64  `json:"waited_ms"`
	WaitSite string `json:"wait_site,omitempty"`
	HoldSite string `json:"hold_site,omitempty"`
}

// Who says who waits.
func (w *Wait) Who() string { return cmp.Or(w.By, "client "+w.Client) }

// mostInLine is how many waits a line has.
const mostInLine = 10

// circleText says in a line who waits for which locks.
func circleText(circle []Wait) string {
	var waits []string
	for _, w := range circle[:min(len(circle), mostInLine)] {
		waits = append(waits, w.Who()+" waits for "+w.Name)
	}
	text := "possible deadlock: " + strings.Join(waits, ", ")
	if n := len(circle) - mostInLine; n > 0 {
		text += fmt.Sprintf(", and %d more", n)
	}
	return text
}

func waitsOf(circles [][]admin.CircularWait) (all [][]Wait) {
	for _, circle := range circles {
		var waits []Wait
		for _, w := range circle {
			waits = append(waits, Wait{
				By: w.By, Client: w.Client, Owner: w.Owner, Name: w.Name, Holder: w.Holder,
				Waited: w.Waited.Milliseconds(), WaitSite: w.WaitSite, HoldSite: w.HoldSite,
			})
		}
		all = append(all, waits)
	}
	return all
}

// through returns the circles in which somebody waits for a name.
func through(name string, circles [][]Wait) (some [][]Wait) {
	for _, circle := range circles {
		if slices.ContainsFunc(circle, func(w Wait) bool { return w.Name == name }) {
			some = append(some, circle)
		}
	}
	return some
}

// suspects returns the circles in which somebody waits for a lock. If what is
// known of the waits for it says that they can be in one, because such a caller
// holds something, it asks for all waits, and once more a little later.
func (t *told) suspects(ctx context.Context, client *redlatch.Client, name string) [][]Wait {
	if !slices.ContainsFunc(t.claims[name], func(c clientClaim) bool { return c.waits && len(c.Under) > 0 }) {
		return nil
	}
	first := ask(ctx, client, admin.Question{})
	if len(through(name, waitsOf(first.CircularWaits()))) == 0 {
		return nil
	}
	select {
	case <-ctx.Done():
		return nil
	case <-time.After(Standing):
		return through(name, waitsOf(ask(ctx, client, admin.Question{}).PossibleDeadlocks(first.Participants)))
	}
}

// A vigil looks for circles of waits in one listing after the other.
type vigil struct {
	first     *told // what was asked so long ago that circles can be told
	deadlocks [][]Wait
}

// look returns the circles that have stood for a while.
func (v *vigil) look(t *told) [][]Wait {
	switch {
	case t.At.IsZero(): // nobody could be asked
		v.first, v.deadlocks = nil, nil
	case v.first == nil:
		v.first = t
	case t.At.Sub(v.first.At) > Standing:
		v.deadlocks, v.first = waitsOf(t.PossibleDeadlocks(v.first.Participants)), t
	}
	return v.deadlocks
}
