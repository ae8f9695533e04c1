package redlatch

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// echo is a driver whose scripts answer with their first argument, after a
// while.
type echo struct {
	traits Traits
	delay  time.Duration
	hung   func(key string) bool // the script is not answered before resume
	resume chan struct{}

	mu      sync.Mutex
	alone   int
	batches []int
}

func newEcho() *echo {
	return &echo{
		traits: Traits{Name: "echo", Timeout: time.Second},
		delay:  time.Millisecond,
		hung:   func(string) bool { return false },
	}
}

func (e *echo) answer(keys, args []string) (Reply, error) {
	time.Sleep(e.delay)
	if len(keys) > 0 && e.hung(keys[0]) {
		<-e.resume
	}
	if args[0] == "fail" {
		return Reply{}, &RunError{Outcome: Refused, Code: "WRONGTYPE", Err: errors.New("no")}
	}
	return Reply{Kind: ReplyString, Str: args[0]}, nil
}

func (e *echo) Run(_ context.Context, _ *Script, keys, args []string) (Reply, error) {
	e.mu.Lock()
	e.alone++
	e.mu.Unlock()
	return e.answer(keys, args)
}

func (e *echo) Subscribe(string, bool, func(Notice)) func()  { return func() {} }
func (e *echo) Primaries(context.Context) ([]Primary, error) { return nil, nil }
func (e *echo) OnBreak(func(string)) func()                  { return func() {} }
func (e *echo) Traits() Traits                               { return e.traits }
func (e *echo) Lane(key string) string {
	if !e.traits.Cluster {
		return ""
	}
	return key
}

// batchEcho can do it for many at once.
type batchEcho struct{ *echo }

func (e batchEcho) RunBatch(requests []*Request) {
	e.mu.Lock()
	e.batches = append(e.batches, len(requests))
	e.mu.Unlock()
	time.Sleep(e.delay)
	for _, r := range requests {
		r.Reply, r.Err = e.answer(r.Keys, r.Args)
	}
}

// Which script it is makes no difference to the driver.
var echoScript = plainLock.take

// sending gives f a client on driver, whose requests can end in time only if
// the library sees to it.
func sending(t *testing.T, driver Redis, f func(t *testing.T, c *Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		switch d := driver.(type) { // its channel has to be of the bubble
		case *echo:
			d.resume = make(chan struct{})
		case batchEcho:
			d.resume = make(chan struct{})
		}
		c, err := New(driver, Config{PubSub: PubSubClassic, WatchdogTimeout: 3 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		f(t, c)
	})
}

func (c *Client) echo(ctx context.Context, key, arg string) error {
	o := op{c: c, script: echoScript, keys: []string{key}, args: []string{arg}, lease: 3 * time.Second, stop: c.done, single: true}
	reply, err := o.run(ctx)
	if err == nil && reply.Str != arg {
		return fmt.Errorf("%s was answered with %q", arg, reply.Str)
	}
	return err
}

// crowd has n goroutines ask at once, a few times.
func crowd(t *testing.T, c *Client, n int, cancellable bool) {
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
				if err := c.echo(ctx, "k", strconv.Itoa(g*100+i)); err != nil {
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
		sending(t, batchEcho{e}, func(t *testing.T, c *Client) {
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
			if s := c.senders.only; s.count != 0 || len(s.away) != 0 || s.open != nil {
				t.Errorf("left in the sender: %d, %d, %v", s.count, len(s.away), s.open)
			}
		})
	}
}

func TestAFailedRequestCostsItsBatchNothing(t *testing.T) {
	sending(t, batchEcho{newEcho()}, func(t *testing.T, c *Client) {
		var wg sync.WaitGroup
		for g := range 50 {
			wg.Go(func() {
				arg := strconv.Itoa(g)
				if g%7 == 0 {
					arg = "fail"
				}
				var re *RunError
				if err := c.echo(context.Background(), "k", arg); (arg == "fail") != errors.As(err, &re) {
					t.Errorf("%s: %v", arg, err)
				}
			})
		}
		wg.Wait()
	})
}

func TestAFewRequestsDoNotWaitForEachOther(t *testing.T) {
	e := newEcho()
	sending(t, batchEcho{e}, func(t *testing.T, c *Client) {
		crowd(t, c, fewRequests, true)
		if len(e.batches) != 0 || e.alone != 5*fewRequests {
			t.Errorf("%d alone, and batches %v", e.alone, e.batches)
		}
	})
}

func TestRequestsWithContextsOfTheirOwnAreNotBatched(t *testing.T) {
	e := newEcho()
	e.traits.ContextValues = true
	sending(t, batchEcho{e}, func(t *testing.T, c *Client) {
		crowd(t, c, 50, true)
		if len(e.batches) != 0 {
			t.Errorf("batches %v", e.batches)
		}
	})
}

func TestADriverThatCannotBatchStillServesACrowd(t *testing.T) {
	e := newEcho()
	sending(t, e, func(t *testing.T, c *Client) {
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
	sending(t, batchEcho{e}, func(t *testing.T, c *Client) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		start, limit := time.Now(), attemptTimeout(3*time.Second)
		var wg sync.WaitGroup
		for i := range 40 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 10 * time.Millisecond)
				sent := time.Now()
				err := c.echo(ctx, "hung", "x")
				took := time.Since(sent)
				var re *RunError
				if !errors.As(err, &re) || re.Outcome != Unknown || !errors.Is(err, errNoAnswer) {
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

func TestAHungLaneDelaysNoOther(t *testing.T) {
	e := newEcho()
	e.traits.Cluster = true
	e.hung = func(key string) bool { return key == "hung" }
	sending(t, batchEcho{e}, func(t *testing.T, c *Client) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		var wg sync.WaitGroup
		for range 40 {
			wg.Go(func() { _ = c.echo(ctx, "hung", "x") })
		}
		synctest.Wait()
		start := time.Now()
		if err := c.echo(ctx, "well", "x"); err != nil || time.Since(start) > 2*e.delay {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		close(e.resume)
		wg.Wait()
	})
}

func TestCloseTellsWhoeverWaitsForAnAnswer(t *testing.T) {
	e := newEcho()
	e.hung = func(string) bool { return true }
	sending(t, batchEcho{e}, func(t *testing.T, c *Client) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if err := c.echo(ctx, "k", "x"); !errors.Is(err, ErrClosed) {
					t.Errorf("%v, want ErrClosed", err)
				}
			})
		}
		synctest.Wait()
		start := time.Now()
		wg.Go(func() { _ = c.Close() })
		synctest.Wait()
		if err := c.echo(ctx, "k", "x"); !errors.Is(err, ErrClosed) {
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
	sending(t, batchEcho{e}, func(t *testing.T, c *Client) {
		ctx, cancel := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				o := op{c: c, script: echoScript, keys: []string{"k"}, args: []string{"x"}, lease: 3 * time.Second, stop: c.done, single: true}
				if _, err := o.run(ctx); !errors.Is(err, context.Canceled) || !o.left {
					t.Errorf("%v", err)
				}
				if reply, err := o.outcome(); err != nil || reply.Str != "x" {
					t.Errorf("the outcome is %+v, %v", reply, err)
				}
			})
		}
		synctest.Wait()
		cancel()
		synctest.Wait()
		time.Sleep(attemptTimeout(3*time.Second) / 2)
		close(e.resume)
		wg.Wait()
	})
}
