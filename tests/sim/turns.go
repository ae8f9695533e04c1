package sim

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/redlatch/redlatch/semaphore"
)

// longestPause is the longest that a process leaves others, as docs/guarantees.md
// says it.
const longestPause = 80 * time.Millisecond

// turnWithin returns for how long a process waits at most, if so many do: the
// bound of docs/guarantees.md.
func turnWithin(waiting int, section time.Duration) time.Duration {
	return time.Duration(waiting+1)*(section+longestPause) + time.Second
}

// An acquire acquires something of an object, which is then given back.
type acquire func(ctx context.Context, p *process, name string) (back func() error, err error)

// A crowd is a process that has an object all the time, since its goroutines pass
// it on to each other, and what others want of it.
type crowd struct {
	goroutines   int
	section      time.Duration // for which one of them has it
	busy, others acquire
	keeps        bool // the others give it back only in the end
}

// crowds are those of a type of which a process leaves others their turns, however
// much it has to do itself. A fair lock has an order of its own.
func (w *world) crowds() []crowd {
	const short, long = time.Millisecond, 10 * time.Millisecond
	whole := func(ctx context.Context, p *process, name string) (func() error, error) {
		return w.gets(ctx, w.whole(p, name))
	}
	all := []crowd{{goroutines: workers, section: short, busy: whole, others: whole}}
	switch w.Type {
	case "lock", "nonreentrant", "fenced", "fair", "group", "acked":
		return all
	case "readwrite": // they read beside one another, so that somebody always does
		return append(all, crowd{goroutines: workers, section: short, others: whole, busy: func(ctx context.Context, p *process, name string) (func() error, error) {
			return w.gets(ctx, choice{lock: p.client.ReadWriteLock(name).Read()})
		}})
	case "permits":
		one := func(ctx context.Context, p *process, name string) (func() error, error) {
			return w.gets(ctx, choice{of: semaphore.NewExpirable(p.client, name, permits), weight: 1})
		}
		return append(all, crowd{goroutines: 3 * permits, section: long, busy: one, others: one, keeps: true})
	case "semaphore":
		one := func(ctx context.Context, p *process, name string) (func() error, error) {
			s := semaphore.New(p.client, name, permits)
			return func() error { return s.Release(bg, 1) }, s.Acquire(ctx, 1)
		}
		return []crowd{{goroutines: 3 * permits, section: long, busy: one, others: one, keeps: true}}
	}
	return nil
}

// gets is an acquire of what is held.
func (w *world) gets(ctx context.Context, x choice) (back func() error, err error) {
	h, err := x.acquire(ctx)
	if err != nil {
		return nil, err
	}
	return func() error { return h.Release(bg) }, nil
}

// takeTurns has the goroutines of a process pass an object on to each other
// without an end, while each other process waits for it once.
func (w *world) takeTurns(busy *process, name string, c crowd) {
	ctx, stop := context.WithCancel(bg)
	var all sync.WaitGroup
	for range c.goroutines {
		all.Go(func() {
			for ctx.Err() == nil {
				back, err := c.busy(ctx, busy, name)
				time.Sleep(c.section) // also if it has nothing: else time would not go on
				if err == nil {
					_ = back()
				}
			}
		})
	}
	time.Sleep(100 * c.section) // in which it finds out that nobody else wants it
	others := slices.DeleteFunc(w.alive(), func(p *process) bool { return p == busy })
	var waiting sync.WaitGroup
	for _, p := range others {
		waiting.Go(func() { w.waitTurn(ctx, p, busy, name, c, len(others)) })
		if c.keeps { // the next one wants what is left
			waiting.Wait()
			time.Sleep(longestPause)
		}
	}
	waiting.Wait()
	stop()
	all.Wait()
}

// waitTurn has a process wait for its turn, beside so many.
func (w *world) waitTurn(ctx context.Context, p, busy *process, name string, c crowd, waiting int) {
	most := turnWithin(waiting, c.section)
	turn, cancel := context.WithTimeout(ctx, most+time.Second)
	defer cancel()
	from := w.now()
	back, err := c.others(turn, p, name)
	if w.turn(p.number, busy.number, name, w.now()-from, most, err); err != nil {
		return
	}
	if c.keeps {
		context.AfterFunc(ctx, func() { _ = back() })
		return
	}
	time.Sleep(c.section)
	_ = back()
}

// turn judges for how long a process has waited for its turn.
func (h *history) turn(process, busy int, name string, waited, most time.Duration, err error) {
	if err != nil || waited > most {
		h.fail("process %d has waited %v for its turn of %s, which process %d passes on, and not %v at most: %v", process, waited, name, busy, most, err)
	}
}
