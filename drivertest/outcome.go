package drivertest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/faultnet"
	"github.com/redlatch/redlatch/internal/heldport"
)

func testNothingListens(e *env) {
	r := e.open(heldport.Refusing(e), short)
	s := e.script("return 1")
	for range 3 {
		start := time.Now()
		_, err := r.Run(context.Background(), s, nil, nil)
		e.failed(err, driver.NotExecuted, "")
		e.inTime("Run", start, r.Traits().Timeout)
	}
}

// A server that accepts connections and says nothing: the script cannot have been
// sent. A driver that cannot tell may say that the outcome is unknown.
func testSilentFromTheStart(e *env) {
	e.proxy.Blackhole(true)
	r := e.open(e.addr, short)
	counter, key := e.counter()
	start := time.Now()
	_, err := r.Run(context.Background(), counter, []string{key}, nil)
	e.inTime("Run", start, r.Traits().Timeout)
	var re *driver.RunError
	if !errors.As(err, &re) || re.Outcome == driver.Refused {
		e.Errorf("Run failed with %v, want that it was not executed", err)
	}
	e.Logf("%v", err)
	e.proxy.Blackhole(false)
	e.proxy.BreakAll()
	e.eventually("a script succeeds", func() bool {
		_, err := r.Run(context.Background(), e.script("return 1"), nil, nil)
		return err == nil
	})
	if n := e.executed(key); n != "0" {
		e.Errorf("the script was executed %s times after all", n)
	}
}

// A way is one in which a driver runs a script.
type way func(e *env, s *driver.Script, keys []string) error

func plainly(e *env, s *driver.Script, keys []string) error {
	_, err := e.r.Run(context.Background(), s, keys, nil)
	return err
}

func withAcks(e *env, s *driver.Script, keys []string) error {
	_, err := e.runAcked(e.r, s, keys, nil)
	return err
}

func testReplyLost(run way) func(e *env) {
	return func(e *env) {
		counter, key := e.counter()
		e.run(counter, []string{key}, nil) // the server knows it from here on
		e.proxy.Record(true)
		for i := range 5 {
			e.proxy.SetRule(faultnet.First(is(counter), faultnet.DropReply))
			e.failed(run(e, counter, []string{key}), driver.Unknown, "")
			e.recovers(e.script("return 1"))
			if n := e.executed(key); n != strconv.Itoa(2+i) {
				e.Fatalf("a script whose reply was lost has been executed %s times, want once each: %d", n, 2+i)
			}
		}
		e.haveSent(counter, 5, 0)
	}
}

func testReplyStalled(e *env) {
	counter, key := e.counter()
	e.run(counter, []string{key}, nil)
	e.proxy.Record(true)
	e.proxy.SetRule(faultnet.First(is(counter), faultnet.StallReply))
	start := time.Now()
	_, err := e.r.Run(context.Background(), counter, []string{key}, nil)
	e.inTime("Run", start, e.r.Traits().Timeout)
	e.failed(err, driver.Unknown, "")
	e.recovers(e.script("return 1"))
	if n := e.executed(key); n != "2" {
		e.Errorf("the script was executed %s times, want 2", n)
	}
	e.haveSent(counter, 1, 0)
}

// A caller that leaves disturbs nobody: what others have sent is answered, and no
// connection counts as lost.
func testInterrupted(e *env) {
	if !e.r.Traits().Interruptible {
		return
	}
	counter, key := e.counter()
	other, others := e.script("return redis.call('incrby', KEYS[1], 1)"), e.prefix+"other"
	e.run(counter, []string{key}, nil)
	e.run(other, []string{others}, nil)
	var breaks atomic.Int64
	defer e.r.OnBreak(func(string) { breaks.Add(1) })()
	for i, how := range []func() (context.Context, context.CancelFunc){
		func() (context.Context, context.CancelFunc) {
			return context.WithTimeout(context.Background(), 50*time.Millisecond)
		},
		func() (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(context.Background())
			time.AfterFunc(50*time.Millisecond, cancel)
			return ctx, cancel
		},
	} {
		ctx, cancel := how()
		defer cancel()
		const late = 5 * time.Second
		e.proxy.SetRule(faultnet.First(is(counter), faultnet.Delay(late)))
		beside := make(chan error, 1)
		go func() {
			_, err := e.r.Run(context.Background(), other, []string{others}, nil)
			beside <- err
		}()
		start := time.Now()
		_, err := e.r.Run(ctx, counter, []string{key}, nil)
		e.failed(err, driver.Unknown, "")
		if took := time.Since(start); took >= late {
			e.Errorf("Run has not returned when its context ended, but after %v", took)
		}
		if err := <-beside; err != nil {
			e.Errorf("a request beside it: %v", err)
		}
		e.run(e.script("return 1"), nil, nil) // behind it
		if n, want := e.executed(others), strconv.Itoa(2+i); n != want {
			e.Errorf("the script beside it was executed %s times, want %s", n, want)
		}
	}
	if n := breaks.Load(); n > 0 {
		e.Errorf("%d breaks reported, and there was none", n)
	}
}

// A caller leaves the first script of a driver, too, once there is a connection.
func testFirstInterrupted(e *env) {
	if !e.r.Traits().Interruptible {
		return
	}
	const late = 5 * time.Second
	counter, key := e.counter()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	e.proxy.SetRule(func(r faultnet.Request) faultnet.Action {
		if !is(counter)(r) {
			return faultnet.Pass
		}
		cancel()
		return faultnet.Delay(late)
	})
	start := time.Now()
	_, err := e.r.Run(ctx, counter, []string{key}, nil)
	e.failed(err, driver.Unknown, "")
	if took := time.Since(start); took >= late {
		e.Errorf("Run has not returned when its context ended, but after %v", took)
	}
}

// A request that is still in flight when its connection is given up can be
// executed at any later time. That is what Unknown means.
func testRequestLate(e *env) {
	counter, key := e.counter()
	e.run(counter, []string{key}, nil)
	var held faultnet.Held
	e.proxy.Record(true)
	e.proxy.SetRule(faultnet.First(is(counter), faultnet.Hold(&held)))
	_, err := e.r.Run(context.Background(), counter, []string{key}, nil)
	e.failed(err, driver.Unknown, "")
	e.recovers(e.script("return 1"))
	if n := e.executed(key); n != "1" {
		e.Errorf("the script was executed %s times before the request arrived, want 1", n)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if reply, err := held.Deliver(ctx); err != nil || reply != ":2\r\n" {
		e.Errorf("the late request was answered with %q, %v", reply, err)
	}
	e.haveSent(counter, 1, 0)
}

// testFallbackReplyLost loses the answer to a script that is sent in full because
// the server does not know it.
func testFallbackReplyLost(run way) func(e *env) {
	return func(e *env) {
		counter, key := e.counter()
		e.recovers(e.script("return 1"))
		e.proxy.Record(true)
		e.proxy.SetRule(faultnet.First(func(r faultnet.Request) bool {
			return r.Args[0] == "EVAL" && r.Script() == counter.SHA()
		}, faultnet.DropReply))
		e.failed(run(e, counter, []string{key}), driver.Unknown, "")
		e.recovers(e.script("return 1"))
		if n := e.executed(key); n != "1" {
			e.Errorf("the script was executed %s times, want 1", n)
		}
		e.haveSent(counter, 1, 1)
	}
}

func testBrokenUnderLoad(e *env) {
	e.brokenUnderLoad(func(s *driver.Script, keys []string, id string) []error {
		_, err := e.r.Run(context.Background(), s, keys, []string{id})
		return []error{err}
	})
}

// brokenUnderLoad breaks connections under run, which is to run s with keys and an
// argument that begins with id and is nobody else's. Whatever happens to
// connections, what was executed lies between the successes and the successes plus
// the unknown outcomes, and nothing was executed twice.
func (e *env) brokenUnderLoad(run func(s *driver.Script, keys []string, id string) []error) {
	e.Helper()
	s, keys := e.script("local n = (redis.call('hget', KEYS[1], ARGV[1]) or 0) + 1; redis.call('hset', KEYS[1], ARGV[1], n); return n"), []string{e.prefix + "executed"}
	e.run(s, keys, []string{"first"})
	var ok, unknown, not atomic.Int64
	ok.Store(1)
	note := func(err error) {
		var re *driver.RunError
		switch {
		case err == nil:
			ok.Add(1)
		case !errors.As(err, &re):
			e.Errorf("a script failed with %T (%v)", err, err)
		case re.Outcome == driver.Unknown:
			unknown.Add(1)
		case re.Outcome == driver.NotExecuted:
			not.Add(1)
		default:
			e.Errorf("a script failed with %v", err)
		}
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for g := range 16 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				errs := run(s, keys, fmt.Sprint(g, "-", i))
				for _, err := range errs {
					note(err)
				}
				if errors.Join(errs...) != nil {
					time.Sleep(time.Millisecond)
				}
			}
		})
	}
	for end, n := time.Now().Add(patience), 0; n < 10 || unknown.Load() == 0 && time.Now().Before(end); n++ {
		before := ok.Load()
		e.eventually("scripts succeed between the breaks", func() bool { return ok.Load() > before+20 })
		e.proxy.BreakAll()
	}
	close(stop)
	wg.Wait()
	n, err := strconv.ParseInt(e.settle(func() string { return e.server.do("HLEN", keys[0]) }), 10, 64)
	if err != nil {
		e.Fatal(err)
	}
	e.Logf("%d executed: %d succeeded, %d unknown, %d not executed", n, ok.Load(), unknown.Load(), not.Load())
	if n < ok.Load() || n > ok.Load()+unknown.Load() {
		e.Errorf("%d executed, but %d succeeded and %d are unknown", n, ok.Load(), unknown.Load())
	}
	if unknown.Load() == 0 {
		e.Error("no script was in flight when a connection broke: the test has tested nothing")
	}
	e.recovers(e.script("return 1"))
	twice := e.script(`local n, all = 0, redis.call('hgetall', KEYS[1])
for i = 2, #all, 2 do if all[i] ~= '1' then n = n + 1 end end
return n`)
	e.eventually("a script that counts succeeds", func() bool { // over whatever connection
		got, err := e.r.Run(context.Background(), twice, keys, nil)
		if err == nil && got.Int != 0 {
			e.Errorf("%d scripts were executed more than once", got.Int)
		}
		return err == nil
	})
}
