package permit

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/holdctx"
	"github.com/redlatch/redlatch/internal/request"
)

// Several are permits of one semaphore that were acquired together. Each is kept
// by itself; they are live as one for as long as all of them are.
type Several struct {
	holdctx.Whole

	ps    []*Permit
	state holdctx.State // of all as one; it has no observer, as each permit has one
	watch sync.Once     // for the first of them to end, once somebody asks for the context
}

// Together returns permits as one.
func Together(ps []*Permit) *Several { return &Several{ps: ps} }

// Permits returns them.
func (several *Several) Permits() []*Permit { return several.ps }

// Name returns the semaphore's name.
func (several *Several) Name() string { return several.ps[0].Name() }

// Kept says whether the watchdog keeps the permits.
func (several *Several) Kept() bool { return several.ps[0].Kept() }

// Err looks at the clock itself. It returns how the first permit ended that was
// seen to have ended: a loss also after the release that followed it.
func (several *Several) Err() error {
	for _, p := range several.ps {
		if err := p.Err(); err != nil {
			return several.state.Finish(err)
		}
	}
	return nil
}

// Expires returns until when all can be trusted: the zero Time if one is over.
func (several *Several) Expires() (first time.Time) {
	for _, p := range several.ps {
		switch end := p.Expires(); {
		case end.IsZero():
			return end
		case first.IsZero() || end.Before(first):
			first = end
		}
	}
	return first
}

// End returns the context that ends with the first permit that does.
func (several *Several) End() context.Context {
	several.watch.Do(func() {
		several.state.Under(several.ps[0].End())
		for _, p := range several.ps {
			end := p.End()
			if end.Err() != nil { // at once, not when a goroutine has run
				several.state.CutContext(context.Cause(end))
				break
			}
			context.AfterFunc(end, func() { several.state.CutContext(context.Cause(end)) })
		}
	})
	return several.state.Context()
}

// Value implements holdctx.Held.
func (several *Several) Value(key any) any {
	switch key.(type) {
	case *holdctx.Owners, holdctx.Doubt: // what a permit answers
	default:
		return nil // at once: it may be asked for any key of anybody, and there may be many permits
	}
	var answer any
	for _, p := range several.ps {
		if v := p.Value(key); answer == nil || v == true {
			answer = v
		}
	}
	return answer
}

// Release ends all permits at once, then they are free for whoever waits. What was
// lost is told once, and a permit that was released by itself before counts as
// released. Whoever has the id of a permit that was detached may have released it,
// or not: so each of those has a request of its own.
func (several *Several) Release(ctx context.Context) error {
	_ = several.Err() // what was lost is over for that reason
	if first, why := several.state.NoteRelease(); !first {
		return why
	}
	sem, live := several.ps[0].sem, &several.ps[0].sem.all.live
	live.releasing(1)
	defer live.releasing(-1)
	ours, apart, over := several.letGo()
	errs := make([]error, 1+len(apart))
	request.AtATime(len(errs), func(i int) bool {
		switch {
		case i > 0:
			errs[i] = apart[i-1].releaseApart(ctx)
		case len(ours) > 0:
			errs[i] = sem.giveUp(ctx, ours)
		}
		return true
	})
	if errors.Is(over, holdctx.ErrLost) && errors.Is(errs[0], holdctx.ErrLost) {
		errs[0] = nil
	}
	return errors.Join(errors.Join(errs...), over)
}

// letGo ends all permits for their holder. It returns those to be released, those
// of them that had been detached apart, and why others were over, unless they had
// been released: if some were lost, how the first of them was.
func (several *Several) letGo() (ours, apart []*Permit, over error) {
	var lapsed []string
	for _, p := range several.ps {
		e := p.letGo()
		switch {
		case e.live && e.detached:
			apart = append(apart, p)
		case e.live:
			ours = append(ours, p)
		case over == nil && !errors.Is(e.err, holdctx.ErrReleased),
			errors.Is(e.err, holdctx.ErrLost) && !errors.Is(over, holdctx.ErrLost):
			over = e.err
		}
		if e.lapsed {
			lapsed = append(lapsed, p.id)
		}
	}
	if len(lapsed) > 0 {
		several.ps[0].sem.discard(lapsed, several.ps[0].uncertain) // until now their time was their holder's
	}
	return ours, apart, over
}

// Extend raises the leases of all permits.
func (several *Several) Extend(ctx context.Context, d time.Duration) error {
	if err := several.Err(); err != nil {
		return err
	}
	return several.each(func(p *Permit) error { return p.Extend(ctx, d) })
}

// SetNote says what all permits are for, from now on, but for those that have been
// detached. It fails if all have.
func (several *Several) SetNote(text string) error {
	if err := several.Err(); err != nil {
		return err
	}
	apart := 0
	for _, p := range several.ps {
		switch err := p.SetNote(text); {
		case errors.Is(err, holdctx.ErrDetached):
			apart++
		case err != nil:
			return err
		}
	}
	if apart == len(several.ps) {
		return holdctx.ErrDetached
	}
	return nil
}

// each calls f for all permits, and joins the errors.
func (several *Several) each(f func(p *Permit) error) error {
	errs := make([]error, len(several.ps))
	request.AtATime(len(several.ps), func(i int) bool {
		errs[i] = f(several.ps[i])
		return true
	})
	return errors.Join(errs...)
}

// Dropped notes that their user lost the permits.
func (several *Several) Dropped() { dropped(several.ps) }
