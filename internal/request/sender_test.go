package request

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/lua"
)

// echo is a driver whose scripts answer with their first argument, after a
// while.
type echo struct {
	traits driver.Traits
	delay  time.Duration
	hung   func(key string) bool // the script is not answered before resume
	left   driver.Outcome        // of one that hangs, when its caller leaves
	resume chan struct{}
	broken bool // and then only with an error

	mu      sync.Mutex
	alone   int
	direct  int // of these, how many a caller has sent itself whose context can end
	batches []int
}

func newEcho() *echo {
	return &echo{
		traits: driver.Traits{Name: "echo", Timeout: time.Second},
		delay:  time.Millisecond,
		hung:   func(string) bool { return false },
	}
}

func (e *echo) answer(keys, args []string) (driver.Reply, error) {
	time.Sleep(e.delay)
	if len(keys) > 0 && e.hung(keys[0]) {
		<-e.resume
		if e.broken {
			return driver.Reply{}, errBroken
		}
	}
	switch args[0] {
	case "fail":
		return driver.Reply{}, &driver.RunError{Outcome: driver.Refused, Code: "WRONGTYPE", Err: errors.New("no")}
	case "slots":
		return driver.Reply{}, &driver.RunError{Outcome: driver.Refused, Code: "CROSSSLOT", Err: errors.New("no")}
	}
	return driver.Reply{Kind: driver.ReplyString, Str: args[0]}, nil
}

func (e *echo) Run(ctx context.Context, _ *driver.Script, keys, args []string) (driver.Reply, error) {
	e.mu.Lock()
	e.alone++
	if ctx.Done() != nil {
		e.direct++
	}
	e.mu.Unlock()
	if !e.traits.Interruptible || ctx.Done() == nil || !e.hung(keys[0]) {
		return e.answer(keys, args)
	}
	select {
	case <-ctx.Done():
		return driver.Reply{}, &driver.RunError{Outcome: e.left, Err: ctx.Err()}
	case <-e.resume:
		return e.answer(keys, args)
	}
}

func (e *echo) Subscribe(string, bool, func(driver.Notice)) func()  { return func() {} }
func (e *echo) Primaries(context.Context) ([]driver.Primary, error) { return nil, nil }
func (e *echo) OnBreak(func(string)) func()                         { return func() {} }
func (e *echo) Traits() driver.Traits                               { return e.traits }
func (e *echo) Node(key string) string {
	if !e.traits.Cluster {
		return ""
	}
	return key
}

// batchEcho can do it for many at once.
type batchEcho struct{ *echo }

func (e batchEcho) RunBatch(requests []*driver.Request) {
	e.mu.Lock()
	e.batches = append(e.batches, len(requests))
	e.mu.Unlock()
	time.Sleep(e.delay)
	for _, r := range requests {
		r.Reply, r.Err = e.answer(r.Keys, r.Args)
	}
}

// Which script it is makes no difference to the driver.
var echoScript = lua.LockTake

// sending gives f a client on driver, whose requests can end in time only if
// the library sees to it.
func sending(t *testing.T, driver driver.Redis, f func(t *testing.T, c *Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		switch d := driver.(type) { // its channel has to be of the bubble
		case *echo:
			d.resume = make(chan struct{})
		case batchEcho:
			d.resume = make(chan struct{})
		}
		c, err := New(Options{Driver: driver, Outage: 10 * time.Second, Length: 3 * time.Second, Policy: Off, Classic: true, Answered: func(string) {}})
		if err != nil {
			t.Fatal(err)
		}
		defer end(c)
		f(t, c)
	})
}

// end is what a client does with its server in the end.
func end(c *Server) {
	if !c.Closed() {
		c.Stop()
		c.End(3 * time.Second)
	}
}

// hear has the server answer promptly: callers go to the driver themselves then.
func hear(t *testing.T, c *Server) {
	t.Helper()
	if err := ask(context.Background(), c, "well", "x"); err != nil {
		t.Error(err)
	}
}

func ask(ctx context.Context, c *Server, key, arg string) error {
	call := Call{Server: c, Script: echoScript, Keys: []string{key}, Args: []string{arg}, Lease: 3 * time.Second, Stop: c.Done, Single: true}
	reply, err := call.Run(ctx)
	if err == nil && reply.Str != arg {
		return fmt.Errorf("%s was answered with %q", arg, reply.Str)
	}
	return err
}

// crowd has n goroutines ask at once, a few times.
func crowd(t *testing.T, c *Server, n int, cancellable bool) {
	t.Helper()
	ctx := context.Background()
	if cancellable {
		var cancel func()
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
	}
	var wg sync.WaitGroup
	for g := range n {
		wg.Go(func() {
			for i := range 5 {
				if err := ask(ctx, c, "k", strconv.Itoa(g*100+i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func TestACrowdSharesBatchesAndEachGetsItsOwnAnswer(t *testing.T) {
	for _, cancellable := range []bool{true, false} {
		e := newEcho()
		sending(t, batchEcho{e}, func(t *testing.T, c *Server) {
			crowd(t, c, 200, cancellable)
			together := 0
			for _, n := range e.batches {
				if n > fullBatch || n < 2 {
					t.Errorf("a batch of %d", n)
				}
				together += n
			}
			if e.alone+together != 1000 {
				t.Errorf("%d and %d requests were sent, want 1000", e.alone, together)
			}
			if together < 500 {
				t.Errorf("only %d of 1000 requests shared a batch", together)
			}
			if out := c.senders.only; out.count != 0 || out.away.first.next != &out.away.first || out.open != nil {
				t.Errorf("left in the sender: %d, %p, %v", out.count, out.away.first.next, out.open)
			}
		})
	}
}

func TestAFailedRequestCostsItsBatchNothing(t *testing.T) {
	sending(t, batchEcho{newEcho()}, func(t *testing.T, c *Server) {
		var wg sync.WaitGroup
		for g := range 50 {
			wg.Go(func() {
				arg := strconv.Itoa(g)
				if g%7 == 0 {
					arg = "fail"
				}
				var re *driver.RunError
				if err := ask(context.Background(), c, "k", arg); (arg == "fail") != errors.As(err, &re) {
					t.Errorf("%s: %v", arg, err)
				}
			})
		}
		wg.Wait()
	})
}

func TestAFewRequestsDoNotWaitForEachOther(t *testing.T) {
	e := newEcho()
	sending(t, batchEcho{e}, func(t *testing.T, c *Server) {
		crowd(t, c, fewRequests-1, true)
		if len(e.batches) != 0 || e.alone != 5*(fewRequests-1) {
			t.Errorf("%d alone, and batches %v", e.alone, e.batches)
		}
	})
}

// A caller that leaves a driver, which drops the answer then, must not overtake
// its own request: a worker sends that once more, and the outcome is that answer.
func TestLeavingADriverKeepsTheOutcome(t *testing.T) {
	e := newEcho()
	e.traits.Interruptible = true
	e.hung = func(key string) bool { return key == "k" }
	sending(t, batchEcho{e}, func(t *testing.T, c *Server) {
		hear(t, c)
		ctx, cancel := context.WithCancel(context.Background())
		retried := 0
		call := Call{
			Server: c, Script: echoScript, Keys: []string{"k"}, Args: []string{"x"}, Lease: 10 * time.Second, Stop: c.Done,
			Retried: func() { retried++ },
		}
		time.AfterFunc(time.Millisecond, cancel)
		start := time.Now()
		if _, err := call.Run(ctx); !errors.Is(err, context.Canceled) || !call.Left || !call.Unknown {
			t.Errorf("%v, left %v, unknown %v", err, call.Left, call.Unknown)
		}
		if took := time.Since(start); took != time.Millisecond {
			t.Errorf("left after %v", took)
		}
		time.AfterFunc(time.Millisecond, func() { close(e.resume) })
		if reply, err := call.Outcome(); err != nil || reply.Str != "x" {
			t.Errorf("the outcome is %+v, %v", reply, err)
		}
		if e.alone != 3 || retried != 1 {
			t.Errorf("%d requests were sent, and %d told to be repeated", e.alone-1, retried)
		}
	})
}

// A server that somebody has not waited for is not silent. One that has not
// answered for long is, until it does.
func TestLeavingADriverSaysNothingOfTheServer(t *testing.T) {
	e := newEcho()
	e.traits.Interruptible = true
	e.hung = func(key string) bool { return key == "k" }
	sending(t, batchEcho{e}, func(t *testing.T, c *Server) {
		hear(t, c)
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(time.Millisecond, cancel)
		keys := []string{"k"}
		call := Call{Server: c, Script: echoScript, Keys: keys, Args: []string{"x"}, Lease: 10 * time.Second, Stop: c.Done}
		if _, err := call.Run(ctx); !errors.Is(err, context.Canceled) || errors.Is(err, ErrUnavailable) {
			t.Error(err)
		}
		if err := c.NoAnswer(keys[0], nil); err != nil {
			t.Errorf("after a millisecond: %v", err)
		}
		time.Sleep(slowAfter)
		if err := c.NoAnswer(keys[0], nil); !errors.Is(err, ErrNoAnswer) {
			t.Errorf("after %v: %v", slowAfter, err)
		}
		close(e.resume)
		if _, err := call.Outcome(); err != nil {
			t.Error(err)
		}
		if since, err := c.senders.of(keys).silent(time.Now()); err != nil || !since.IsZero() {
			t.Errorf("after the answer: %v", err)
		}
	})
}

// A driver without a connection has sent nothing when its caller leaves, so
// nothing is in flight that would show the silence.
func TestAServerThatLetsNobodyConnectIsSilentToo(t *testing.T) {
	e := newEcho()
	e.traits.Interruptible = true
	e.hung, e.left = func(key string) bool { return key == "k" }, driver.NotExecuted
	sending(t, batchEcho{e}, func(t *testing.T, c *Server) {
		keys := []string{"k"}
		leave := func(after time.Duration) error {
			time.Sleep(quietAfter) // since others have left
			hear(t, c)
			ctx, cancel := context.WithCancel(context.Background())
			time.AfterFunc(after, cancel)
			call := Call{Server: c, Script: echoScript, Keys: keys, Args: []string{"x"}, Lease: 10 * time.Second, Stop: c.Done}
			_, err := call.Run(ctx)
			return err
		}
		well := func(when string) {
			t.Helper()
			if err := leave(time.Millisecond); !errors.Is(err, context.Canceled) || errors.Is(err, ErrUnavailable) {
				t.Errorf("%s: %v", when, err)
			}
			time.Sleep(2 * slowAfter)
			if err := c.NoAnswer(keys[0], nil); err != nil {
				t.Errorf("%s, later: %v", when, err)
			}
		}
		well("a millisecond")
		if err := leave(time.Second); !errors.Is(err, context.Canceled) || !errors.Is(err, ErrUnavailable) {
			t.Errorf("a second: %v", err)
		}
		if err := c.NoAnswer(keys[0], nil); !errors.Is(err, ErrNoAnswer) { // as one asks that has waited for that caller
			t.Errorf("behind it: %v", err)
		}
		well("a millisecond, soon after an outage")
	})
}

// A server's word counts, whoever has left meanwhile.
func TestARefusalIsToldToALeaver(t *testing.T) {
	e := newEcho()
	e.traits.Interruptible = true
	sending(t, batchEcho{e}, func(t *testing.T, c *Server) {
		hear(t, c)
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(e.delay/2, cancel)
		call := Call{Server: c, Script: echoScript, Keys: []string{"k"}, Args: []string{"fail"}, Lease: 10 * time.Second, Stop: c.Done}
		if _, err := call.Run(ctx); driver.Failure(err).Code != "WRONGTYPE" || call.Left {
			t.Errorf("%v, left %v", err, call.Left)
		}
	})
}

// A program closes its client library after Close. While a connection is broken,
// or many requests are in flight, they go out together, on the goroutine of one of
// their callers.
func TestCloseWaitsForCallersInTheDriver(t *testing.T) {
	for name, alone := range map[string]bool{"alone": true, "in a batch": false} {
		t.Run(name, func(t *testing.T) {
			e := newEcho()
			e.traits.Interruptible = alone
			e.hung = func(key string) bool { return key == "k" }
			sending(t, batchEcho{e}, func(t *testing.T, c *Server) {
				hear(t, c)
				ctx := context.Background()
				if alone {
					var cancel context.CancelFunc
					ctx, cancel = context.WithCancel(ctx)
					defer cancel()
				} else {
					c.Broke("")
				}
				answered := make(chan error, 1)
				call := Call{Server: c, Script: echoScript, Keys: []string{"k"}, Args: []string{"x"}, Lease: 10 * time.Second, Stop: c.Over}
				go func() {
					_, err := call.Run(ctx)
					answered <- err
				}()
				synctest.Wait()
				c.Stop()
				time.AfterFunc(time.Second, func() { close(e.resume) })
				start := time.Now()
				if !c.End(3*time.Second) || time.Since(start) < time.Second {
					t.Errorf("ended after %v", time.Since(start))
				}
				if err := <-answered; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A request that must not be repeated is left to a worker from the start.
func TestARequestThatIsSentOnceIsNotSentAgainByALeaver(t *testing.T) {
	e := newEcho()
	e.traits.Interruptible = true
	e.hung = func(key string) bool { return key == "k" }
	sending(t, batchEcho{e}, func(t *testing.T, c *Server) {
		hear(t, c)
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(time.Millisecond, cancel)
		if err := ask(ctx, c, "k", "x"); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		close(e.resume)
		synctest.Wait()
		if e.alone != 2 {
			t.Errorf("%d requests were sent, want 1", e.alone-1)
		}
	})
}

// Without a connection a driver may not return when its caller leaves. So workers
// wait for it, from a break or the first failure until there is an answer.
func TestACallerCanLeaveWhileADriverConnects(t *testing.T) {
	e := newEcho()
	e.traits.Interruptible = true
	sending(t, batchEcho{e}, func(t *testing.T, c *Server) {
		hear(t, c)
		c.Broke("")
		e.traits.Interruptible = false // it does not return
		e.hung = func(string) bool { return true }
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(time.Millisecond, cancel)
		call := Call{Server: c, Script: echoScript, Keys: []string{"k"}, Args: []string{"x"}, Lease: 10 * time.Second, Stop: c.Done}
		start := time.Now()
		if _, err := call.Run(ctx); !errors.Is(err, context.Canceled) || time.Since(start) != time.Millisecond {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		close(e.resume)
		synctest.Wait()
		if c.senders.only.quiet {
			t.Error("an answer has not shown that the server is there")
		}
	})
}

// A caller that needs no worker costs less. It waits as long for the driver as the
// call allows, and that is longer for a patient one.
func TestAPatientCallerWaitsForTheDriver(t *testing.T) {
	for patient, want := range map[bool]int{true: 1, false: 2} {
		e := newEcho()
		e.traits.Timeout = 3 * time.Second
		e.hung = func(string) bool { return true }
		sending(t, e, func(t *testing.T, c *Server) {
			time.AfterFunc(2*time.Second, func() { close(e.resume) })
			call := Call{Server: c, Script: echoScript, Keys: []string{"k"}, Args: []string{"x"}, Lease: 10 * time.Second, Stop: c.Done, Patient: patient}
			if reply, err := call.Run(context.Background()); err != nil || reply.Str != "x" {
				t.Errorf("%+v, %v", reply, err)
			}
			if e.alone != want {
				t.Errorf("patient %v: %d requests were sent, want %d", patient, e.alone, want)
			}
		})
	}
}

func TestRequestsWithContextsOfTheirOwnAreNotBatched(t *testing.T) {
	e := newEcho()
	e.traits.ContextValues = true
	sending(t, batchEcho{e}, func(t *testing.T, c *Server) {
		crowd(t, c, 50, true)
		if len(e.batches) != 0 {
			t.Errorf("batches %v", e.batches)
		}
	})
}

func TestADriverThatCannotBatchStillServesACrowd(t *testing.T) {
	e := newEcho()
	sending(t, e, func(t *testing.T, c *Server) {
		crowd(t, c, 50, true)
		if e.alone != 250 {
			t.Errorf("%d requests were sent, want 250", e.alone)
		}
	})
}

// The first few hang by themselves, the others in batches.
func TestNoAnswerIsToldInTimeWhateverTheDriverDoes(t *testing.T) {
	e := newEcho()
	e.hung = func(key string) bool { return key == "hung" }
	sending(t, batchEcho{e}, func(t *testing.T, c *Server) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		start, limit := time.Now(), AttemptTimeout(3*time.Second)
		var wg sync.WaitGroup
		for i := range 40 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 10 * time.Millisecond)
				sent := time.Now()
				err := ask(ctx, c, "hung", "x")
				took := time.Since(sent)
				var re *driver.RunError
				if !errors.As(err, &re) || re.Outcome != driver.Unknown || !errors.Is(err, ErrNoAnswer) {
					t.Errorf("%v", err)
				}
				if took < limit || took > limit+alarmPause {
					t.Errorf("told after %v, want %v", took, limit)
				}
			})
		}
		wg.Wait()
		if time.Since(start) > time.Second {
			t.Errorf("it took %v", time.Since(start))
		}
		close(e.resume) // late answers are nobody's
		crowd(t, c, 50, true)
	})
}

func TestAHungNodeDelaysNoOther(t *testing.T) {
	e := newEcho()
	e.traits.Cluster = true
	e.hung = func(key string) bool { return key == "hung" }
	sending(t, batchEcho{e}, func(t *testing.T, c *Server) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		var wg sync.WaitGroup
		for range 40 {
			wg.Go(func() { _ = ask(ctx, c, "hung", "x") })
		}
		synctest.Wait()
		start := time.Now()
		if err := ask(ctx, c, "well", "x"); err != nil || time.Since(start) > 2*e.delay {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		close(e.resume)
		wg.Wait()
	})
}

func TestCloseTellsWhoeverWaitsForAnAnswer(t *testing.T) {
	e := newEcho()
	e.hung = func(string) bool { return true }
	sending(t, batchEcho{e}, func(t *testing.T, c *Server) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if err := ask(ctx, c, "k", "x"); !errors.Is(err, ErrClosed) {
					t.Errorf("%v, want ErrClosed", err)
				}
			})
		}
		synctest.Wait()
		start := time.Now()
		wg.Go(func() { end(c) })
		synctest.Wait()
		if err := ask(ctx, c, "k", "x"); !errors.Is(err, ErrClosed) {
			t.Errorf("a late one: %v, want ErrClosed", err)
		}
		if time.Since(start) != 0 {
			t.Errorf("told after %v", time.Since(start))
		}
		close(e.resume)
		wg.Wait()
	})
}

// Whoever leaves early learns in the end what became of the request, once.
func TestLeavingEarlyKeepsTheOutcome(t *testing.T) {
	e := newEcho()
	e.hung = func(string) bool { return true }
	sending(t, batchEcho{e}, func(t *testing.T, c *Server) {
		ctx, cancel := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				call := Call{Server: c, Script: echoScript, Keys: []string{"k"}, Args: []string{"x"}, Lease: 3 * time.Second, Stop: c.Done, Single: true}
				if _, err := call.Run(ctx); !errors.Is(err, context.Canceled) || !call.Left {
					t.Errorf("%v", err)
				}
				if reply, err := call.Outcome(); err != nil || reply.Str != "x" {
					t.Errorf("the outcome is %+v, %v", reply, err)
				}
			})
		}
		synctest.Wait()
		cancel()
		synctest.Wait()
		time.Sleep(AttemptTimeout(3*time.Second) / 2)
		close(e.resume)
		wg.Wait()
	})
}
