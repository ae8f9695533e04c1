package dashboard

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/overview"
)

const (
	mostViewers = 200              // pages that are open or being made
	mostNames   = 32               // locks that they show by themselves
	mostLooking = 30 * time.Second // for which a look is waited for
	mostWaiting = 5 * time.Second  // for which a page is not made, for want of a look
)

var (
	errFull   = fmt.Errorf("%d pages are open, which is the most; close one, or try again later", mostViewers)
	errNames  = fmt.Errorf("the pages that are open show %d locks by themselves, which is the most; close one, or try again later", mostNames)
	errClosed = errors.New("the dashboard is closed")
)

// A lister lists what there is, and looks at these names besides.
type lister func(ctx context.Context, names []string) (overview.Listing, error)

// A watch looks at the server again and again while there are viewers. One
// goroutine does, whatever their number.
type watch struct {
	list     lister
	interval time.Duration
	ctx      context.Context //nolint:containedctx // of all looks; it ends with the handler
	end      context.CancelFunc
	work     sync.WaitGroup
	nudge    chan struct{} // has room for one: somebody has come or gone

	mu        sync.RWMutex
	viewers   map[*viewer]struct{}
	running   bool // the goroutine is there
	stale     bool // nobody was there for a while, and there is no look since then
	last      look
	histories overview.Histories
}

// A look is what is known.
type look struct {
	overview.Listing // the last that was had; its time is zero if there was none

	tried time.Time // when the last look ended; zero if there was none
	down  error     // why that failed, if it did
	since time.Time // of the first that failed
}

// A viewer is a page that is open, or being made.
type viewer struct {
	name    string        // of the lock that it shows; empty for the list
	hungry  bool          // it waits for a look that begins from now on
	changed chan struct{} // has room for one: there is a newer look
}

func newWatch(list lister, interval time.Duration) *watch {
	ctx, end := context.WithCancel(context.Background())
	return &watch{
		list: list, interval: interval, ctx: ctx, end: end, nudge: make(chan struct{}, 1), viewers: map[*viewer]struct{}{},
		histories: overview.Histories{Since: time.Now()},
	}
}

func (t *watch) close() {
	t.mu.Lock()
	t.end()
	t.mu.Unlock()
	t.work.Wait()
}

// attach adds a viewer. It gets a look of now, unless there is one that is new
// enough.
func (t *watch) attach(name string) (*viewer, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.ctx.Err() != nil:
		return nil, errClosed
	case len(t.viewers) >= mostViewers:
		return nil, errFull
	}
	if names := t.names(); name != "" && len(names) >= mostNames {
		if _, looked := names[name]; !looked {
			return nil, errNames
		}
	}
	if !t.running && !t.fresh() {
		t.stale, t.last.down = true, nil // what failed then says nothing of now
	}
	_, looked := t.last.Looked[name]
	v := &viewer{name: name, hungry: !t.fresh() || name != "" && !looked, changed: make(chan struct{}, 1)}
	t.viewers[v] = struct{}{}
	if !t.running {
		t.running = true
		t.work.Go(t.run)
	}
	notify(t.nudge)
	return v, nil
}

func (t *watch) detach(v *viewer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.viewers, v)
	notify(t.nudge)
}

// names are those that viewers show by themselves. The mutex is held.
func (t *watch) names() map[string]struct{} {
	names := map[string]struct{}{}
	for v := range t.viewers {
		if v.name != "" {
			names[v.name] = struct{}{}
		}
	}
	return names
}

// fresh says whether the last look is not too old to be shown. The mutex is held.
func (t *watch) fresh() bool {
	return !t.last.tried.IsZero() && !t.stale && (t.running || time.Since(t.last.tried) < t.interval)
}

// run looks again and again, until nobody is there.
func (t *watch) run() {
	for {
		names, ok := t.due()
		if !ok {
			return
		}
		ctx, cancel := context.WithTimeout(t.ctx, mostLooking)
		listing, err := t.list(ctx, names)
		if ctx.Err() != nil && t.ctx.Err() == nil {
			err = fmt.Errorf("no answer for %v", mostLooking)
		}
		cancel()
		t.publish(listing, err)
	}
}

// due waits until it is time for a look, and returns the names to look at. It is
// not ok if nobody is there any more.
func (t *watch) due() (names []string, ok bool) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		wait, names, ok := t.next()
		if !ok || wait <= 0 {
			return names, ok
		}
		timer.Reset(wait)
		select {
		case <-t.ctx.Done():
		case <-timer.C:
		case <-t.nudge:
		}
	}
}

// next is how long to wait for the next look. If that is nothing, whoever is there
// will have had it.
func (t *watch) next() (wait time.Duration, names []string, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.viewers) == 0 || t.ctx.Err() != nil {
		t.running = false
		return 0, nil, false
	}
	after := t.interval
	for v := range t.viewers {
		if v.hungry {
			after = leastInterval
		}
	}
	if wait = time.Until(t.last.tried.Add(after)); wait > 0 {
		return wait, nil, true
	}
	for v := range t.viewers {
		v.hungry = false
	}
	return 0, slices.Sorted(maps.Keys(t.names())), true
}

// publish tells all viewers what came of a look.
func (t *watch) publish(listing overview.Listing, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last.tried, t.stale = time.Now(), false
	switch {
	case err == nil:
		t.last.Listing, t.last.down = listing, nil
		t.histories.Add(&listing)
	case t.last.down == nil:
		t.last.down, t.last.since = err, t.last.tried
	default:
		t.last.down = err
	}
	for v := range t.viewers {
		notify(v.changed)
	}
}

// current waits until there is something to show of a lock, or of all: for as long
// as the patience lasts.
func (t *watch) current(ctx context.Context, name string, patience time.Duration) error {
	if t.has(name) {
		return nil
	}
	v, err := t.attach(name)
	if err != nil {
		return err
	}
	defer t.detach(v)
	if t.has(name) { // just now
		return nil
	}
	enough := time.NewTimer(patience)
	defer enough.Stop()
	for {
		select {
		case <-v.changed:
			if t.served(v) {
				return nil
			}
		case <-enough.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-t.ctx.Done():
			return errClosed
		}
	}
}

// has says whether something new enough is known of a lock, or of all.
func (t *watch) has(name string) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.ctx.Err() != nil || !t.fresh() {
		return false
	}
	_, looked := t.last.Looked[name]
	return name == "" || looked || t.last.down != nil || t.last.Named(name) != nil
}

// served says whether a look has begun since a viewer came.
func (t *watch) served(v *viewer) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return !v.hungry
}

func notify(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
