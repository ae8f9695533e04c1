package election

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/lock"
	"github.com/redlatch/redlatch/internal/request"
)

// ErrResigned is the cause with which the context of a leader ends that was made to resign.
var ErrResigned = errors.New("redlatch: resigned")

// Elections are those in which a client has candidates.
type Elections struct {
	Server *request.Server

	mu    sync.Mutex
	terms map[string][]*term // by the name of the election: those that the client's candidates have now
}

// A term is the time for which a candidate leads.
type term struct {
	resign context.CancelCauseFunc
	over   chan struct{} // closed when it has been given up in Redis, too
}

// A Hold is what makes a candidate the leader.
type Hold interface {
	With(ctx context.Context) context.Context
	Release(ctx context.Context) error
}

// A Candidate stands for election.
type Candidate struct {
	Name string
	// Campaign waits until the candidate leads, and returns a context to lead under that descends from ctx.
	Campaign func(ctx context.Context) (context.Context, Hold, error)
	// Again says of an error of Campaign whether to try again.
	Again func(error) bool
	// Ended returns the error of the context that ended a call, if an error is that call's and the context did; else nil.
	Ended func(error) error
	// Lead is called once for each term.
	Lead func(ctx context.Context) error
}

// The pauses after a term. While terms are shorter than longTerm each is twice as long as the one
// before. A campaign that failed has taken its time already, so the first pause follows.
const (
	firstPause   = time.Second
	longestPause = 30 * time.Second
	longTerm     = time.Minute
)

// Run campaigns and leads until ctx ends, or an error cannot be helped.
func (all *Elections) Run(ctx context.Context, c *Candidate) error {
	for pause := time.Duration(0); ; {
		led, err := all.stand(ctx, c)
		switch {
		case err != nil && (led > 0 || ctx.Err() == nil && !c.Again(err)):
			return err
		case ctx.Err() != nil:
			return request.ContextError(ctx)
		case led == 0 || led >= longTerm:
			pause = 0
		}
		pause = min(max(2*pause, firstPause), longestPause)
		if _, err := request.Pause(ctx, all.Server.Done, nil, time.Time{}, request.Jittered(pause)); err != nil {
			return err
		}
	}
}

// stand campaigns and leads once, and returns for how long it has led: 0 if it was not elected.
func (all *Elections) stand(ctx context.Context, c *Candidate) (led time.Duration, err error) {
	t := &term{over: make(chan struct{})}
	ctx, t.resign = context.WithCancelCause(context.WithValue(ctx, leading{c.Name}, t))
	defer t.resign(nil)
	ctx, hold, err := c.Campaign(ctx)
	if err != nil {
		return 0, err
	}
	start := time.Now()
	err = all.lead(ctx, c, t, patient{hold})
	return max(time.Since(start), 1), err
}

// patient is a hold of which a release also waits that is called when the context has ended: the
// next one leads then.
type patient struct{ Hold }

func (p patient) Release(ctx context.Context) error {
	return p.Hold.Release(context.WithoutCancel(ctx))
}

// lead calls the candidate's function under a hold. It returns its error, unless that only
// says that the term was over.
func (all *Elections) lead(ctx context.Context, c *Candidate, t *term, hold Hold) (err error) {
	all.begin(c.Name, t)
	defer all.end(c.Name, t)
	stop := all.Server.OnStop(func() { t.resign(request.ErrClosed) }) // else the term would last until the client ends
	defer stop()
	_ = lock.Do(ctx, hold, func(leading context.Context) error {
		err = c.Lead(leading)
		if end := leading.Err(); end != nil && c.onlySays(err, end, context.Cause(leading)) {
			err = nil
		}
		return nil
	})
	return err
}

// onlySays says whether each error that err is made of says one of these. What a call of this library adds
// that the context has ended, such as why it waited, does not count.
func (c *Candidate) onlySays(err error, said ...error) bool {
	if end := c.Ended(err); end != nil {
		return c.onlySays(end, said...)
	}
	switch e := err.(type) { //nolint:errorlint // what it wraps is looked at one by one
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			return c.onlySays(inner, said...)
		}
	case interface{ Unwrap() []error }:
		if all := e.Unwrap(); len(all) > 0 {
			return !slices.ContainsFunc(all, func(part error) bool { return !c.onlySays(part, said...) })
		}
	}
	return slices.ContainsFunc(said, func(end error) bool { return errors.Is(err, end) || errors.Is(end, err) })
}

// leading is the context key of the term in an election.
type leading struct{ name string }

func (all *Elections) begin(name string, t *term) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.terms == nil {
		all.terms = make(map[string][]*term)
	}
	all.terms[name] = append(all.terms[name], t)
}

func (all *Elections) end(name string, t *term) {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.terms[name] = slices.DeleteFunc(all.terms[name], func(x *term) bool { return x == t })
	if len(all.terms[name]) == 0 {
		delete(all.terms, name)
	}
	close(t.over)
}

// Resign ends the term that a candidate of this client has, and says whether there was one. It
// waits until it has been given up in Redis, too, but not for a leader that makes itself resign.
func (all *Elections) Resign(ctx context.Context, name string) (bool, error) {
	all.mu.Lock()
	terms := slices.Clone(all.terms[name])
	all.mu.Unlock()
	own, _ := ctx.Value(leading{name}).(*term)
	for _, t := range terms {
		t.resign(ErrResigned)
	}
	for _, t := range terms {
		if t == own {
			continue
		}
		if _, err := request.Await(ctx, all.Server.Over, t.over, time.Time{}); err != nil {
			return true, err
		}
	}
	return len(terms) > 0, nil
}
