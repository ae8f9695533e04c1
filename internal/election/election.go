package election

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/lock"
	"github.com/redlatch/redlatch/internal/request"
)

// ErrResigned is the cause with which the context of a leader ends that was made
// to resign.
var ErrResigned = errors.New("redlatch: resigned")

// Elections are those in which a client has candidates.
type Elections struct {
	Server *request.Server

	mu  sync.Mutex
	all map[string]*standing // by the name of the election
}

// A standing is what the client's candidates are in one election. Elections.mu
// guards it.
type standing struct {
	candidates int     // calls of Run
	terms      []*term // those that they have now
}

// A term is the time for which a candidate leads.
type term struct {
	resign context.CancelCauseFunc
	over   chan struct{} // closed when it has been given up in Redis, too

	// Elections.mu guards these.
	leads  context.Context //nolint:containedctx // the leader's, while Lead runs; else nil
	number int64
}

// A Hold is what makes a candidate the leader.
type Hold interface {
	With(ctx context.Context) context.Context
	Release(ctx context.Context) error
	Token() int64 // the number of the term
}

// A Candidate stands for election.
type Candidate struct {
	Name string
	// Standby is for how long nobody has led before the candidate campaigns; 0: it
	// campaigns at once.
	Standby time.Duration
	// Look asks who leads, and Channel is where it is told that a leadership is given
	// up. A candidate with Standby needs both.
	Look    func(ctx context.Context) (Seat, error)
	Channel string
	// Campaign waits until the candidate leads, or only tries, and returns a context
	// to lead under that descends from ctx.
	Campaign func(ctx context.Context, once bool) (context.Context, Hold, error)
	// Again says of an error of Campaign whether to try again.
	Again func(error) bool
	// Ended returns the error of the context that ended a call, if an error is that
	// call's and the context did; else nil.
	Ended func(error) error
	// Lead is called once for each term.
	Lead func(ctx context.Context, term int64) error
}

// The pauses after a term. While terms are shorter than longTerm each is twice as
// long as the one before. A campaign that failed has taken its time already, so
// the first pause follows.
const (
	firstPause   = time.Second
	longestPause = 30 * time.Second
	longTerm     = time.Minute
)

// Run campaigns and leads until ctx ends, or an error cannot be helped.
func (all *Elections) Run(ctx context.Context, c *Candidate) error {
	all.enter(c.Name)
	defer all.leave(c.Name)
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

// stand campaigns and leads once, and returns for how long it has led: 0 if it was
// not elected.
func (all *Elections) stand(ctx context.Context, c *Candidate) (led time.Duration, err error) {
	t := &term{over: make(chan struct{})}
	ctx, t.resign = context.WithCancelCause(context.WithValue(ctx, leading{c.Name}, t))
	defer t.resign(nil)
	if c.Standby > 0 {
		if err := all.standBy(ctx, c); err != nil {
			return 0, err
		}
	}
	ctx, hold, err := c.Campaign(ctx, c.Standby > 0)
	if err != nil {
		return 0, err
	}
	start := time.Now()
	err = all.lead(ctx, c, t, patient{hold})
	return max(time.Since(start), 1), err
}

// patient is a hold of which a release also waits that is called when the context
// has ended: the next one leads then.
type patient struct{ Hold }

func (p patient) Release(ctx context.Context) error {
	return p.Hold.Release(context.WithoutCancel(ctx))
}

// lead calls the candidate's function under a hold. It returns its error, unless
// that only says that the term was over.
func (all *Elections) lead(ctx context.Context, c *Candidate, t *term, hold Hold) (err error) {
	all.begin(c.Name, t)
	defer all.end(c.Name, t)
	stop := all.Server.OnStop(func() { t.resign(request.ErrClosed) }) // else the term would last until the client ends
	defer stop()
	_ = lock.Do(ctx, hold, func(leading context.Context) error {
		number := hold.Token()
		defer all.leads(leading, t, number)()
		err = c.Lead(leading, number)
		if end := leading.Err(); end != nil && c.onlySays(err, end, context.Cause(leading)) {
			err = nil
		}
		return nil
	})
	return err
}

// onlySays says whether each error that err is made of says one of these. What a
// call of this library adds that the context has ended, such as why it waited,
// does not count.
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

// enter notes that one more candidate stands; leave, that it does not any more.
func (all *Elections) enter(name string) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.all == nil {
		all.all = make(map[string]*standing)
	}
	if all.all[name] == nil {
		all.all[name] = &standing{}
	}
	all.all[name].candidates++
}

func (all *Elections) leave(name string) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.all[name].candidates--; all.all[name].candidates == 0 {
		delete(all.all, name)
	}
}

// begin notes a term of a candidate that stands; end, that it has been given up.
func (all *Elections) begin(name string, t *term) {
	all.mu.Lock()
	defer all.mu.Unlock()
	s := all.all[name]
	s.terms = append(s.terms, t)
}

func (all *Elections) end(name string, t *term) {
	all.mu.Lock()
	defer all.mu.Unlock()
	s := all.all[name]
	s.terms = slices.DeleteFunc(s.terms, func(x *term) bool { return x == t })
	close(t.over)
}

// leads notes the context of a leader, until its function has returned.
func (all *Elections) leads(ctx context.Context, t *term, number int64) (over func()) {
	all.mu.Lock()
	defer all.mu.Unlock()
	t.leads, t.number = ctx, number
	return func() {
		all.mu.Lock()
		defer all.mu.Unlock()
		t.leads = nil
	}
}

// Leading returns the number of the term for which a candidate of this client
// leads now, and whether there is one.
func (all *Elections) Leading(name string) (number int64, leading bool) {
	all.mu.Lock()
	var terms []term
	if s := all.all[name]; s != nil {
		for _, t := range s.terms {
			terms = append(terms, term{leads: t.leads, number: t.number})
		}
	}
	all.mu.Unlock() // a context may be a user's, and ask the same
	for _, t := range terms {
		if t.leads != nil && t.leads.Err() == nil {
			return t.number, true
		}
	}
	return 0, false
}

// Names returns the elections in which this client has candidates.
func (all *Elections) Names() []string {
	all.mu.Lock()
	defer all.mu.Unlock()
	return slices.Collect(maps.Keys(all.all))
}

// Resign ends the term that a candidate of this client has, and says whether there
// was one. It waits until it has been given up in Redis, too, but not for a leader
// that makes itself resign.
func (all *Elections) Resign(ctx context.Context, name string) (bool, error) {
	all.mu.Lock()
	var terms []*term
	if s := all.all[name]; s != nil {
		terms = slices.Clone(s.terms)
	}
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
