package sim

import (
	"context"
	"slices"
	"sync"
	"time"
)

// section is how long a worker has what it passes on while others wait for their turns, and longestPause the longest that a process leaves
// them, as docs/guarantees.md says it.
const (
	section      = time.Millisecond
	longestPause = 80 * time.Millisecond
)

// turnWithin returns for how long a process waits at most, if so many do: the bound of docs/guarantees.md.
func turnWithin(waiting int) time.Duration {
	return time.Duration(waiting+1)*(section+longestPause) + time.Second
}

// fills are the types of which a process leaves others their turns, however much it has to do itself. A fair lock has an order of its own.
func fills() []string {
	return []string{"lock", "nonreentrant", "fenced", "fair", "readwrite", "permits", "group", "acked"}
}

// takeTurns has the workers of a process pass an object on to each other without an end, while each other process waits for it once.
func (w *world) takeTurns(busy *process, name string) {
	if !slices.Contains(fills(), w.Type) {
		return
	}
	ctx, stop := context.WithCancel(bg)
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for ctx.Err() == nil {
				_ = w.pass(ctx, busy, name)
			}
		})
	}
	time.Sleep(10 * section)
	others := slices.DeleteFunc(w.alive(), func(p *process) bool { return p == busy })
	var waiting sync.WaitGroup
	for _, p := range others {
		waiting.Go(func() {
			turn, cancel := context.WithTimeout(ctx, turnWithin(len(others))+time.Second)
			defer cancel()
			from := w.now()
			err := w.pass(turn, p, name)
			w.turn(p.number, busy.number, name, len(others), w.now()-from, err)
		})
	}
	waiting.Wait()
	stop()
	all.Wait()
}

// turn judges for how long a process has waited for its turn.
func (h *history) turn(process, busy int, name string, waiting int, waited time.Duration, err error) {
	if limit := turnWithin(waiting); err != nil || waited > limit {
		h.fail("process %d has waited %v for its turn of %s, which process %d passes on, and not %v at most: %v", process, waited, name, busy, limit, err)
	}
}

// pass has all of an object for a moment.
func (w *world) pass(ctx context.Context, p *process, name string) error {
	h, err := w.whole(p, name).acquire(ctx)
	if err != nil {
		return err
	}
	time.Sleep(section)
	return h.Release(bg)
}
