package holdctx

import (
	"context"
	"sync"
)

// Held is something held: a hold of a lock, or of several as one, or a permit.
type Held interface {
	Err() error        // why it is over, by the clock
	Value(key any) any // its answer to a context's Value, or nil
}

// A Context adds to a context what only a hold knows: the clock, and that
// whoever has the context has the lock. The context inside is a standard one,
// so children need no goroutine and context.Cause works.
//
// The hold's end is no Deadline: that moves, by renewals or Extend, and what was
// made of the context before would have copied it.
type Context struct {
	context.Context //nolint:containedctx // this is a context
	held            Held
	owner           any                     // is not garbage collected while somebody uses the context
	cancel          context.CancelCauseFunc // ends the context inside, unless what is held does that itself; else nil
}

// New returns the context of something held, made of the one that ends with it.
// owner is what its user has.
func New(end context.Context, h Held, owner any) *Context { return &Context{end, h, owner, nil} }

// Err looks at the clock itself. What it says is over has its cause from then on.
func (c *Context) Err() error {
	if err := c.Context.Err(); err != nil {
		return err
	}
	err := c.held.Err()
	if err == nil {
		return nil
	}
	if c.cancel != nil {
		c.cancel(err) // AfterFunc does that too, in a goroutine that has not run yet
	}
	return context.Canceled
}

// From returns the owner of the innermost Context that ctx descends from and whose
// owner is a T; the zero T if there is none.
func From[T any](ctx context.Context) T {
	owner, _ := ctx.Value(ownerKey[T]{}).(T)
	return owner
}

type ownerKey[T any] struct{}

func (ownerKey[T]) is(owner any) bool {
	_, is := owner.(T)
	return is
}

// Value answers the question which hold of a lock a context descends from, and
// whose it is.
func (c *Context) Value(key any) any {
	if k, ok := key.(interface{ is(owner any) bool }); ok && k.is(c.owner) {
		return c.owner
	}
	if v := c.held.Value(key); v != nil {
		return v
	}
	return c.Context.Value(key)
}

// Join returns ctx together with the end of what is held, which ends with
// the context end.
func Join(ctx, end context.Context, h Held, owner any) context.Context {
	both, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(end, func() { cancel(context.Cause(end)) })
	context.AfterFunc(both, func() { stop() })
	return &Context{both, h, owner, cancel}
}

// A lazy is the context that ends with something held, made when somebody
// asks for it. Its owner's mutex guards it.
type lazy struct {
	Context context.Context         //nolint:containedctx // the acquisition's, until somebody asks
	cancel  context.CancelCauseFunc // ends the context; nil until somebody asks
}

// get returns the context. It has the values of the acquisition's, and is over
// if err says why what is held is.
func (e *lazy) get(err error) context.Context {
	if e.cancel == nil {
		if e.Context.Done() != nil {
			e.Context = context.WithoutCancel(e.Context)
		}
		e.Context, e.cancel = context.WithCancelCause(e.Context)
		e.end(err)
	}
	return e.Context
}

// end ends the context with err as its cause, if there is one and err is not nil.
// It runs no code of users: functions given to context.AfterFunc get goroutines of
// their own.
func (e *lazy) end(err error) {
	if e.cancel != nil && err != nil {
		e.cancel(err)
	}
}

// now makes the context, if nobody has asked for it, and ends it with err as its
// cause.
func (e *lazy) now(err error) {
	e.get(nil)
	e.end(err)
}

// Dropped are holds that were garbage collected without having been released.
type Dropped struct {
	mu     sync.Mutex // guards giveUp
	giveUp []func()
}

// Add has something that its user lost given up. It is called by the garbage
// collector's goroutine, which does not belong to the client's world (in a test
// it is outside of the synctest bubble): whoever calls GiveUp sees to the rest.
func (d *Dropped) Add(giveUp func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.giveUp = append(d.giveUp, giveUp)
}

// GiveUp gives up what was dropped.
func (d *Dropped) GiveUp() {
	d.mu.Lock()
	all := d.giveUp
	d.giveUp = nil
	d.mu.Unlock()
	for _, giveUp := range all {
		giveUp()
	}
}
