package request

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch/driver"
)

// direct is a driver to which callers go themselves, and that returns when its
// time is over.
func direct() *echo {
	e := newEcho()
	e.traits.Direct = true
	return e
}

// leaver prepares a call whose caller may go to the driver itself.
func leaver(c *Server, key string) *Call {
	return &Call{Server: c, Script: echoScript, Keys: []string{key}, Args: []string{"x"}, Lease: 10 * time.Second, Stop: c.Done}
}

func TestACallerGoesToTheDriverWhileTheNodeIsPrompt(t *testing.T) {
	e := direct()
	sending(t, batchEcho{e}, func(t *testing.T, c *Server) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		before := 0
		goes := func(ctx context.Context, itself bool, when string) {
			t.Helper()
			if _, err := leaver(c, "well").Run(ctx); err != nil {
				t.Errorf("%s: %v", when, err)
			}
			if n := e.direct - before; (n == 1) != itself {
				t.Errorf("%s: %d callers have gone themselves", when, n)
			}
			before = e.direct
		}
		goes(ctx, false, "nothing is known of the node")
		goes(ctx, true, "it has answered")
		time.Sleep(promptly)
		goes(ctx, true, "a moment later")
		time.Sleep(promptly + time.Millisecond)
		goes(ctx, false, "the answer is no longer fresh")
		e.delay = promptly + time.Millisecond
		goes(ctx, true, "it begins to be slow")
		goes(ctx, false, "it is slow")
		e.delay = promptly
		goes(ctx, false, "it was slow until now")
		goes(ctx, true, "it is prompt again")
		soon, cancel := context.WithTimeout(ctx, promptly+time.Millisecond)
		defer cancel()
		goes(soon, true, "the caller has time enough")
		soon, cancel = context.WithTimeout(ctx, promptly)
		defer cancel()
		e.delay = time.Millisecond
		goes(soon, false, "the caller may not have time enough")
		goes(ctx, true, "another one has")
		e.hung = func(key string) bool { return key == "hung" }
		hung := make(chan struct{})
		go func() {
			defer close(hung)
			_, _ = leaver(c, "hung").Run(ctx)
		}()
		synctest.Wait()
		before++
		for range promptly/e.delay + 1 {
			goes(ctx, true, "a request has just been sent")
		}
		goes(ctx, false, "an answer is overdue, whatever others get")
		close(e.resume)
		<-hung
		goes(ctx, false, "it was overdue until now")
		goes(ctx, true, "all is well")
	})
}

// Those who are in the driver when a node falls silent cannot be let go before the
// driver is. All others can: also those that come when it has been silent for a
// moment, whether or not their contexts have said when they will end.
func TestOnlyThoseInTheDriverAreLateWhenANodeFallsSilent(t *testing.T) {
	e := direct()
	e.hung = func(key string) bool { return key == "hung" }
	sending(t, batchEcho{e}, func(t *testing.T, c *Server) {
		hear(t, c)
		var wg sync.WaitGroup
		crowd := func(late time.Duration) {
			for i := range 100 {
				wg.Go(func() {
					const patience = 30 * time.Millisecond
					ctx, cancel := context.WithCancel(context.Background())
					if i%2 == 0 {
						ctx, cancel = context.WithTimeout(ctx, patience)
					} else {
						time.AfterFunc(patience, cancel)
					}
					defer cancel()
					start := time.Now()
					call := leaver(c, "hung")
					if _, err := call.Run(ctx); !errors.Is(err, ctx.Err()) || !call.Left || !call.Unknown && call.Pending == nil {
						t.Errorf("%v, left %v, unknown %v", err, call.Left, call.Unknown)
					}
					if took := time.Since(start) - patience; took > late {
						t.Errorf("%v late, want %v at most", took, late)
					}
				})
			}
		}
		time.AfterFunc(e.traits.Timeout, func() { close(e.resume) }) // as its connections fail
		e.broken = true
		crowd(e.traits.Timeout)
		time.Sleep(promptly + time.Millisecond)
		crowd(0)
		time.Sleep(100 * time.Millisecond)
		crowd(0)
		wg.Wait()
		if n := e.direct; n == 0 || n > 100 {
			t.Errorf("%d callers have gone to the driver themselves, want the first 100 at most", n)
		}
	})
}

// A driver that can be left drops the answer, so that the request is sent once
// more, and what the first one may have made is an orphan. Where one caller leaves
// others will: a worker sends for them, once.
func TestWhereCallersLeaveRequestsAreNotSentTwice(t *testing.T) {
	e := newEcho()
	e.traits.Interruptible = true
	e.hung = func(key string) bool { return key == "slow" }
	sending(t, batchEcho{e}, func(t *testing.T, c *Server) {
		const callers = 100
		unknown := 0
		for range callers {
			hear(t, c)
			ctx, cancel := context.WithCancel(context.Background())
			time.AfterFunc(time.Millisecond, cancel)
			time.AfterFunc(5*time.Millisecond, func() { e.resume <- struct{}{} })
			call := leaver(c, "slow")
			if _, err := call.Run(ctx); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			if reply, err := call.Outcome(); err != nil || reply.Str != "x" {
				t.Errorf("the outcome is %+v, %v", reply, err)
			}
			if call.Unknown {
				unknown++
			}
			time.Sleep(10 * time.Millisecond)
		}
		if n := e.alone - 2*callers; n > 1 || unknown > 1 {
			t.Errorf("of %d requests %d were sent once more, and of %d it was not known what became of them", callers, n, unknown)
		}
	})
}

// What a driver says that does not end with its caller is how the attempt has
// ended.
func TestADriverThatFailsWhenItsCallerHasLeftIsBelieved(t *testing.T) {
	e := direct()
	e.hung = func(key string) bool { return key == "hung" }
	e.broken = true
	sending(t, batchEcho{e}, func(t *testing.T, c *Server) {
		hear(t, c)
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(time.Millisecond, cancel)
		time.AfterFunc(e.traits.Timeout, func() { close(e.resume) })
		call := leaver(c, "hung")
		if _, err := call.Run(ctx); !errors.Is(err, context.Canceled) || !errors.Is(err, ErrUnavailable) || !errors.Is(err, errBroken) {
			t.Error(err)
		}
		if !call.Unknown || call.Pending != nil || e.alone != 2 {
			t.Errorf("unknown %v, pending %v, %d requests", call.Unknown, call.Pending != nil, e.alone-1)
		}
		if !c.senders.only.quiet {
			t.Error("that its connection has been given up says nothing of the node")
		}
	})
}

var errBroken = &driver.RunError{Outcome: driver.Unknown, Err: errors.New("the connection has been given up")}
