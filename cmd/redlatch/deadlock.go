package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redlatch/redlatch"
)

// standing is for how long callers have to wait for one another before that is called a possible
// deadlock: what clients say of one moment may be of several.
const standing = 2 * time.Second

// A waitJSON is one of a circle of waits: its holder is the owner of the next one.
type waitJSON struct {
	By       string `json:"by"`
	Client   string `json:"client"`
	Owner    string `json:"owner"`
	Name     string `json:"name"`
	Holder   string `json:"holder"`
	Waited   int64  `json:"waited_ms"`
	WaitSite string `json:"wait_site,omitempty"`
	HoldSite string `json:"hold_site,omitempty"`
}

// suspect asks for all waits, and once more a little later, if what is known of those for a lock
// says that they can be in a circle: some caller waits for it and holds something.
func (t *told) suspect(ctx context.Context, client *redlatch.Client, name string) {
	if !slices.ContainsFunc(t.claims[name], func(c clientClaim) bool { return c.waits && len(c.Under) > 0 }) {
		return
	}
	first := ask(ctx, client, redlatch.Question{})
	if !slices.ContainsFunc(first.CircularWaits(), func(c []redlatch.CircularWait) bool { return isFor(c, name) }) {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(standing):
		t.deadlocks = ask(ctx, client, redlatch.Question{}).PossibleDeadlocks(first.Participants)
	}
}

// A vigil looks for circles of waits in one listing after the other.
type vigil struct {
	first     *told // what was asked so long ago that circles can be told
	deadlocks [][]redlatch.CircularWait
}

// look returns the circles that have stood for a while.
func (v *vigil) look(t *told) [][]redlatch.CircularWait {
	switch {
	case v.first == nil:
		v.first = t
	case t.At.Sub(v.first.At) > standing:
		v.deadlocks, v.first = t.PossibleDeadlocks(v.first.Participants), t
	}
	return v.deadlocks
}

// isFor says whether a caller in the circle waits for the name.
func isFor(circle []redlatch.CircularWait, name string) bool {
	return slices.ContainsFunc(circle, func(w redlatch.CircularWait) bool { return w.Name == name })
}

// addDeadlocks adds the circles in which somebody waits for the lock.
func (t *told) addDeadlocks(l *lockJSON) {
	for _, circle := range t.deadlocks {
		if !isFor(circle, l.Name) {
			continue
		}
		var waits []waitJSON
		for _, w := range circle {
			waits = append(waits, waitJSON{
				By: w.By, Client: w.Client, Owner: w.Owner, Name: w.Name, Holder: w.Holder,
				Waited: w.Waited.Milliseconds(), WaitSite: w.WaitSite, HoldSite: w.HoldSite,
			})
		}
		l.Deadlocks = append(l.Deadlocks, waits)
	}
}

// deadlockRows are the callers that seem to wait for one another.
func (l *lockJSON) deadlockRows() (rows [][]string) {
	for _, circle := range l.Deadlocks {
		rows = append(rows, []string{"deadlock", fmt.Sprintf("possible deadlock of %d callers:", len(circle))})
		for i, w := range circle {
			text := w.who() + " waits for " + w.Name + ", for " + ttlText(w.Waited) + at(w.WaitSite)
			text += "; held by " + circle[(i+1)%len(circle)].who() + at(w.HoldSite)
			rows = append(rows, []string{"", text})
		}
	}
	return rows
}

func (w *waitJSON) who() string { return cmp.Or(w.By, "client "+w.Client) }

func at(site string) string {
	if site == "" {
		return ""
	}
	return ", at " + site
}

// circleText says which locks the waits of a circle are for, and whose they are.
func circleText(circle []redlatch.CircularWait) string {
	var waits []string
	for _, w := range circle {
		waits = append(waits, fmt.Sprintf("%s waits for %s", cmp.Or(w.By, "client "+w.Client), w.Name))
	}
	return "possible deadlock: " + strings.Join(waits, ", ")
}
