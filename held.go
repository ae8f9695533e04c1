package redlatch

import "context"

// held is what the contexts of a Hold, a MultiHold and a Permit know of it.
type held interface {
	Err() error        // why it is over, by the clock
	value(key any) any // its answer to a context's Value, or nil
}

// heldContext adds to a context what only the hold knows: the clock, and that
// whoever has the context has the lock. The context inside is a standard one,
// so children need no goroutine and context.Cause works. It refers to the
// Hold: while somebody uses the context, the Hold is not dropped.
//
// The hold's end is no Deadline: that moves, by renewals or Extend, and what was
// made of the context before would have copied it.
type heldContext struct {
	context.Context //nolint:containedctx // this is a context
	held            held
}

// Err looks at the clock itself, as Hold.Err does.
func (c *heldContext) Err() error {
	if err := c.Context.Err(); err != nil {
		return err
	}
	if c.held.Err() != nil {
		return context.Canceled
	}
	return nil
}

// Value answers the question which hold of a lock a context descends from.
func (c *heldContext) Value(key any) any {
	if v := c.held.value(key); v != nil {
		return v
	}
	return c.Context.Value(key)
}

// joinHeld returns ctx together with the end of what is held, which ends with
// the context end.
func joinHeld(ctx, end context.Context, h held) context.Context {
	both, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(end, func() { cancel(context.Cause(end)) })
	context.AfterFunc(both, func() { stop() })
	return &heldContext{Context: both, held: h}
}

// An ending is the context that ends with something held, made when somebody
// asks for it. Its owner's mutex guards it.
type ending struct {
	ctx    context.Context         //nolint:containedctx // nil until asked for
	cancel context.CancelCauseFunc // ends ctx
}

// make returns the context. It has the values of the acquisition's, and is over
// if err says why what is held is.
func (e *ending) make(values context.Context, err error) context.Context {
	if e.ctx == nil {
		if values.Done() != nil {
			values = context.WithoutCancel(values)
		}
		e.ctx, e.cancel = context.WithCancelCause(values)
		if err != nil {
			e.cancel(err)
		}
	}
	return e.ctx
}

// drop has something that its user lost given up. It is called by the garbage
// collector's goroutine, which does not belong to the client's world (in a test
// it is outside of the synctest bubble): the clock sees to the rest.
func (c *Client) drop(giveUp func()) {
	c.droppedMu.Lock()
	defer c.droppedMu.Unlock()
	c.dropped = append(c.dropped, giveUp)
}

// collectDropped gives up what was dropped.
func (c *Client) collectDropped() {
	c.droppedMu.Lock()
	dropped := c.dropped
	c.dropped = nil
	c.droppedMu.Unlock()
	for _, giveUp := range dropped {
		giveUp()
	}
}
