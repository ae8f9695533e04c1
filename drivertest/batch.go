package drivertest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/faultnet"
	"github.com/redlatch/redlatch/internal/heldport"
)

// batchTests are for drivers that have RunBatch.
var batchTests = []test{
	{"RepliesGoToTheirRequests", testBatchReplies, long},
	{"RunsAndBatchesDoNotMix", testBatchesAndRuns, long},
	{"ErrorCostsOnlyItself", testBatchError, long},
	{"EachErrorIsJudgedAsByRun", testBatchErrorCodes, long},
	{"UnknownScriptsRunOnce", testBatchUnknownScripts, long},
	{"FallbackIsNotRepeated", testBatchFallbackReplyLost, long},
	{"LostConnectionRepeatsNothing", testBatchConnectionLost, long},
	{"LateRequestsRunOnce", testBatchRequestLate, long},
	{"SilenceEndsInTime", testBatchReplyStalled, short},
	{"BreaksUnderLoadRepeatNothing", testBatchBrokenUnderLoad, long},
	{"NothingRunsWithoutServer", testBatchNothingListens, long},
	{"BreakIsReported", testBatchBreakIsReported, long},
	{"NameMoves", testNameMoves(together), long},
}

var errNotSet = errors.New("drivertest: RunBatch did not set Err")

// request returns one whose results are those of an earlier use.
func request(s *driver.Script, keys []string, args ...string) *driver.Request {
	return &driver.Request{
		Script: s, Keys: keys, Args: args,
		Reply: driver.Reply{Kind: driver.ReplyString, Str: "not set"}, Err: errNotSet,
	}
}

// counters returns n requests that count, each under a key of its own.
func (e *env) counters(s *driver.Script, name string, n int) []*driver.Request {
	requests := make([]*driver.Request, n)
	for i := range requests {
		requests[i] = request(s, []string{fmt.Sprint(e.prefix, name, ":", i)})
	}
	return requests
}

// together is a way.
func together(e *env, s *driver.Script, keys []string) error {
	requests := []*driver.Request{request(s, keys), request(s, []string{keys[0] + ":too"})}
	e.runBatch(e.r, requests)
	return cmp.Or(requests[0].Err, requests[1].Err)
}

// runBatch runs requests in time, with a driver that is a Batcher.
func (e *env) runBatch(r driver.Redis, requests []*driver.Request) {
	e.Helper()
	b, ok := r.(driver.Batcher)
	if !ok {
		e.Fatal("the driver is no Batcher any more")
	}
	start := time.Now()
	b.RunBatch(requests)
	e.inTime("RunBatch", start, r.Traits().Timeout)
}

// answers checks what became of one request of a batch.
func (e *env) answers(r *driver.Request, want driver.Reply) {
	e.Helper()
	if r.Err != nil || !reflect.DeepEqual(r.Reply, want) {
		e.Errorf("%.60q %.60q: got %.100v, %v; want %.100v", r.Keys, r.Args, r.Reply, r.Err, want)
	}
}

func testBatchReplies(e *env) {
	num, str := e.script("return tonumber(ARGV[1])"), e.script("return ARGV[1]")
	null, array := e.script("return nil"), e.script("return {KEYS[1], false, tonumber(ARGV[1]), #KEYS, #ARGV}")
	for round, n := range []int{2, 100, 100, 3} { // at first the scripts are unknown
		var requests []*driver.Request
		var want []driver.Reply
		for i := range n {
			key, arg := fmt.Sprint(e.prefix, "ü\r\n\x00", i), strconv.Itoa(1000*round+i)
			value := number(int64(1000*round + i))
			switch i % 5 {
			case 0:
				requests, want = append(requests, request(num, nil, arg)), append(want, value)
			case 1:
				requests, want = append(requests, request(str, []string{key}, arg)), append(want, text(arg))
			case 2:
				requests, want = append(requests, request(null, nil)), append(want, driver.Reply{})
			case 3:
				requests = append(requests, request(array, []string{key, "k"}, arg, "\xff"))
				want = append(want, list(text(key), driver.Reply{}, value, number(2), number(2)))
			case 4: // large, and empty
				long := fmt.Sprintf("%020000d", i)
				requests, want = append(requests, request(str, nil, long)), append(want, text(long))
			}
		}
		sent := slices.Clone(requests)
		e.runBatch(e.r, requests)
		if !slices.Equal(requests, sent) {
			e.Error("RunBatch changed the slice of requests")
		}
		for i, r := range requests {
			e.answers(r, want[i])
		}
	}
}

// What redlatch hands to a driver it uses again right after the call.
func testBatchesAndRuns(e *env) {
	s := e.script("return {redis.call('incr', KEYS[1]), ARGV[1]}")
	keys := []string{e.prefix + "counter"}
	const goroutines, rounds = 24, 10
	var mu sync.Mutex
	seen := make(map[int64]bool)
	check := func(me string, reply driver.Reply, err error) {
		if err != nil || len(reply.List) != 2 || reply.List[1].Str != me {
			e.Errorf("%s got %v, %v", me, reply, err)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if seen[reply.List[0].Int] {
			e.Errorf("%s got a number that another has: %v", me, reply)
		}
		seen[reply.List[0].Int] = true
	}
	total := 0
	var wg sync.WaitGroup
	for g := range goroutines {
		n := 2 + g%7
		total += rounds * (n + 1)
		wg.Go(func() {
			for i := range rounds {
				me := fmt.Sprint("run ", g, "-", i)
				reply, err := e.attempt(e.r, s, keys, []string{me})
				check(me, reply, err)
			}
		})
		wg.Go(func() {
			requests := make([]*driver.Request, n)
			for k := range requests {
				requests[k] = request(s, keys, "")
			}
			for i := range rounds {
				for k, r := range requests {
					r.Args[0] = fmt.Sprint("batch ", g, "-", i, "-", k)
				}
				end, rest := time.Now().Add(patience), slices.Clone(requests)
				for len(rest) > 0 { // what was not sent again, as attempt does
					e.runBatch(e.r, rest)
					rest = slices.DeleteFunc(rest, func(r *driver.Request) bool { return !unsent(r.Err) || time.Now().After(end) })
				}
				for _, r := range requests {
					check(r.Args[0], r.Reply, r.Err)
				}
			}
		})
	}
	wg.Wait()
	if n := e.executed(keys[0]); len(seen) != total || n != strconv.Itoa(total) {
		e.Errorf("%d requests got %d different replies, and %s were executed", total, len(seen), n)
	}
}

func testBatchError(e *env) {
	counter, key := e.counter()
	other := e.prefix + "string"
	e.server.do("SET", other, "x")
	for range 2 { // the second time the scripts are known
		e.server.do("DEL", key)
		good := func() *driver.Request { return request(counter, []string{key}) }
		bad := func(source string) *driver.Request { return request(e.script(source), []string{other}) }
		requests := []*driver.Request{
			good(),
			bad("return redis.call('hget', KEYS[1], 'f')"),
			good(),
			bad("return redis.error_reply('MINE is this')"),
			bad("error('raised')"),
			bad("this is no Lua"),
			good(),
			bad("return redis.call('hget', KEYS[1], 'g')"),
		}
		codes := []string{"", "WRONGTYPE", "", "MINE", "ERR", "ERR", "", "WRONGTYPE"}
		e.runBatch(e.r, requests)
		var got []int64
		for i, r := range requests {
			switch {
			case codes[i] != "":
				e.failed(r.Err, driver.Refused, codes[i])
			case r.Err != nil:
				e.Errorf("request %d beside errors failed with %v", i, r.Err)
			default:
				got = append(got, r.Reply.Int)
			}
		}
		slices.Sort(got) // the order is not promised
		if n := e.executed(key); n != "3" || !slices.Equal(got, []int64{1, 2, 3}) {
			e.Errorf("three requests beside errors were executed %s times and answered %v", n, got)
		}
	}
}

func testBatchErrorCodes(e *env) {
	s := e.script("return 1")
	for code, c := range errorCodes() {
		r := e.open(e.answering(c.text), long)
		requests := []*driver.Request{request(s, nil), request(s, nil), request(s, nil)}
		e.runBatch(r, requests)
		for _, x := range requests {
			e.failed(x.Err, c.outcome, code)
		}
	}
}

func testBatchUnknownScripts(e *env) {
	known, _ := e.counter()
	e.run(known, []string{e.prefix + "warm"}, nil)
	set := e.script("redis.call('incr', KEYS[1]) return {'first'}")
	wrong := e.script("redis.call('incr', KEYS[1]) return redis.call('hget', KEYS[1], 'f')")
	mix := func(round int) (requests []*driver.Request) {
		for i, s := range []*driver.Script{set, known, wrong, known, set, set, wrong} {
			requests = append(requests, request(s, []string{fmt.Sprintf("%s%d:%d", e.prefix, round, i)}))
		}
		return requests
	}
	n := map[*driver.Script]int{set: 3, known: 2, wrong: 2}
	for round := range 3 {
		e.proxy.Record(true)
		requests := mix(round)
		e.runBatch(e.r, requests)
		for _, r := range requests {
			switch r.Script {
			case known:
				e.answers(r, number(1))
			case set:
				e.answers(r, list(text("first")))
			case wrong:
				e.failed(r.Err, driver.Refused, "WRONGTYPE")
			}
			if got := e.executed(r.Keys[0]); got != "1" {
				e.Errorf("round %d: a script was executed %s times", round, got)
			}
		}
		for s, n := range n {
			evalsha, eval := e.sent(s)
			least, most := 1, n // in the first round
			switch s {
			case known:
				least, most = 0, 0
			case wrong:
				most = n * (round + 1) // some servers do not keep a script that failed
			}
			if evalsha != n*(round+1) || eval < least || eval > most {
				e.Errorf("after %d rounds, %d runs each: EVALSHA %d times and EVAL %d times, want EVAL %d to %d times",
					round+1, n, evalsha, eval, least, most)
			}
		}
	}
}

func testBatchFallbackReplyLost(e *env) {
	counter, _ := e.counter()
	e.recovers(e.script("return 1"))
	requests := e.counters(counter, "fallback", 5)
	e.proxy.Record(true)
	e.proxy.SetRule(faultnet.First(func(r faultnet.Request) bool {
		return r.Args[0] == "EVAL" && slices.Contains(r.Args, requests[2].Keys[0])
	}, faultnet.DropReply))
	e.runBatch(e.r, requests)
	e.failed(requests[2].Err, driver.Unknown, "")
	e.recovers(e.script("return 1"))
	e.once(requests)
	if evalsha, eval := e.sent(counter); evalsha != 5 || eval > 5 {
		e.Errorf("five requests sent EVALSHA %d times and EVAL %d times", evalsha, eval)
	}
}

// once checks that counting requests, which had a key each, were executed as they
// say, and none twice.
func (e *env) once(requests []*driver.Request) {
	e.Helper()
	for i, r := range requests {
		var re *driver.RunError
		n := e.executed(r.Keys[0])
		switch {
		case r.Err == nil && (n != "1" || r.Reply.Int != 1):
			e.Errorf("request %d succeeded with %v and was executed %s times", i, r.Reply, n)
		case r.Err == nil:
		case !errors.As(r.Err, &re):
			e.Errorf("request %d failed with %T (%v)", i, r.Err, r.Err)
		case n != "0" && n != "1":
			e.Errorf("request %d (%v) was executed %s times", i, r.Err, n)
		case re.Outcome != driver.Unknown && n != "0":
			e.Errorf("request %d (%v) was executed all the same", i, r.Err)
		}
	}
}

// crowd makes a driver that pipelines only under load do so.
func (e *env) crowd(s *driver.Script) {
	e.Helper()
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() { _, _ = e.r.Run(context.Background(), s, []string{e.prefix + "crowd"}, nil) })
	}
	wg.Wait()
}

// carries matches the request that runs r.
func carries(r *driver.Request) func(faultnet.Request) bool {
	return func(x faultnet.Request) bool {
		return x.Script() == r.Script.SHA() && slices.Contains(x.Args, r.Keys[0])
	}
}

func testBatchConnectionLost(e *env) {
	counter, _ := e.counter()
	e.run(counter, []string{e.prefix + "warm"}, nil)
	const n, lost = 20, 7
	var all []*driver.Request
	unanswered := 0
	for round := range 6 {
		if round%2 == 1 {
			e.crowd(counter)
		}
		requests := e.counters(counter, fmt.Sprint("lost", round), n)
		e.proxy.Record(true)
		e.proxy.SetRule(faultnet.First(carries(requests[lost]), faultnet.DropReply))
		e.runBatch(e.r, requests)
		e.failed(requests[lost].Err, driver.Unknown, "")
		for _, r := range requests[lost:] {
			var re *driver.RunError
			if errors.As(r.Err, &re) && re.Outcome == driver.Unknown {
				unanswered++
			}
		}
		e.recovers(e.script("return 1"))
		// Not those of the round before, which the proxy may have read just now.
		for i, r := range requests {
			if sent := len(slices.DeleteFunc(e.proxy.Requests(), func(x faultnet.Request) bool { return !carries(r)(x) })); sent > 1 {
				e.Errorf("round %d: request %d was sent %d times", round, i, sent)
			}
		}
		e.proxy.Record(false)
		all = append(all, requests...)
	}
	e.settle(func() string { return e.executed(all[len(all)-1].Keys[0]) })
	e.once(all)
	e.Logf("%d requests from the lost reply on, %d of them unknown", 6*(n-lost), unanswered)
}

func testBatchRequestLate(e *env) {
	counter, _ := e.counter()
	e.run(counter, []string{e.prefix + "warm"}, nil)
	requests := e.counters(counter, "late", 10)
	const late = 4
	var held faultnet.Held
	e.proxy.SetRule(faultnet.First(carries(requests[late]), faultnet.Hold(&held)))
	e.runBatch(e.r, requests)
	e.failed(requests[late].Err, driver.Unknown, "")
	e.recovers(e.script("return 1"))
	e.once(requests)
	if n := e.executed(requests[late].Keys[0]); n != "0" {
		e.Errorf("before it arrived a request was executed %s times", n)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if reply, err := held.Deliver(ctx); err != nil || reply != ":1\r\n" {
		e.Errorf("the late request was answered with %q, %v", reply, err)
	}
	e.once(requests)
}

func testBatchReplyStalled(e *env) {
	counter, _ := e.counter()
	e.run(counter, []string{e.prefix + "warm"}, nil)
	for round := range 2 {
		if round == 1 {
			e.crowd(counter)
		}
		requests := e.counters(counter, fmt.Sprint("stalled", round), 10)
		e.proxy.SetRule(faultnet.First(carries(requests[3]), faultnet.StallReply))
		e.runBatch(e.r, requests)
		e.failed(requests[3].Err, driver.Unknown, "")
		e.recovers(e.script("return 1"))
		e.once(requests)
	}
}

func testBatchBrokenUnderLoad(e *env) {
	e.brokenUnderLoad(func(s *driver.Script, keys []string, id string) []error {
		requests := make([]*driver.Request, 5)
		for i := range requests {
			requests[i] = request(s, keys, fmt.Sprint(id, "-", i))
		}
		e.runBatch(e.r, requests)
		errs := make([]error, len(requests))
		for i, r := range requests {
			errs[i] = r.Err
		}
		return errs
	})
}

func testBatchNothingListens(e *env) {
	r := e.open(heldport.Refusing(e), short)
	counter, _ := e.counter()
	for range 3 {
		requests := e.counters(counter, "unreachable", 5)
		e.runBatch(r, requests)
		for _, x := range requests {
			e.failed(x.Err, driver.NotExecuted, "")
		}
	}
}

func testBatchBreakIsReported(e *env) {
	counter, _ := e.counter()
	e.run(counter, []string{e.prefix + "warm"}, nil)
	var breaks atomic.Int64
	defer e.r.OnBreak(func(node string) {
		if node != e.r.Node("key") {
			e.Errorf("a break of node %q", node)
		}
		breaks.Add(1)
	})()
	requests := e.counters(counter, "whole", 5)
	e.runBatch(e.r, requests)
	e.once(requests)
	if n := breaks.Load(); n != 0 {
		e.Errorf("%d breaks reported, and there was none", n)
	}
	requests = e.counters(counter, "broken", 5)
	e.proxy.SetRule(faultnet.First(carries(requests[2]), faultnet.DropReply))
	e.runBatch(e.r, requests)
	e.failed(requests[2].Err, driver.Unknown, "")
	e.eventually("the break is reported", func() bool { return breaks.Load() > 0 })
}
