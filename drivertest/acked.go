package drivertest

import (
	"context"
	"errors"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/faultnet"
	"github.com/redlatch/redlatch/internal/heldport"
)

// ackedTests are for drivers that have RunAcked. Those whose names begin with
// Replica need replicas.
var ackedTests = []test{
	{"Replies", testAckedReplies, long},
	{"UnknownScript", testAckedUnknownScript, long},
	{"ErrorCodes", testAckedErrorCodes, long},
	{"NothingListens", testAckedNothingListens, long},
	{"ReplyLost", testReplyLost(withAcks), long},
	{"FallbackReplyLost", testFallbackReplyLost(withAcks), long},
	{"RequestLate", testAckedRequestLate, long},
	{"SilenceEndsInTime", testAckedSilence, short},
	{"AcknowledgementLost", testAckedWaitLost, long},
	{"BreaksUnderLoad", testAckedBrokenUnderLoad, long},
	{"ServerCannotWait", testAckedCannotWait, long},
	{"ServerDoesNotTell", testAckedNoRole, long},
	{"ConnectionsAreGivenBack", testAckedConnections, long},
	{"DelaysOnlyWhoWaits", testAckedDelays, long},
	{"ReplicasAreCounted", testReplicasCounted, long},
	{"ReplicaIsSilent", testReplicaSilent, middling},
	{"ReplicaSilentBeforeScriptIsKnown", testReplicaSilentFallback, middling},
	{"NameMoves", testNameMoves(withAcks), long},
}

// moment is as long as the tests let a driver wait for replicas that are not
// there.
const moment = 10 * time.Millisecond

func (e *env) acker(r driver.Redis) driver.Acker {
	e.Helper()
	a, ok := r.(driver.Acker)
	if !ok {
		e.Fatal("the driver is no Acker any more")
	}
	return a
}

// runAcked runs a script in time, and does not wait long for one replica.
func (e *env) runAcked(r driver.Redis, s *driver.Script, keys, args []string) (driver.Reply, error) {
	e.Helper()
	reply, _, err := e.ack(r, s, keys, args, 1, moment)
	return reply, err
}

func (e *env) ack(
	r driver.Redis, s *driver.Script, keys, args []string, replicas int, timeout time.Duration,
) (reply driver.Reply, acked int, err error) {
	e.Helper()
	start := time.Now()
	reply, acked, err = e.acker(r).RunAcked(context.Background(), s, keys, args, replicas, timeout)
	e.inTime("RunAcked", start, r.Traits().Timeout)
	return reply, acked, err
}

func testAckedReplies(e *env) {
	n := e.linked()
	key := e.prefix + "ü\r\n\x00"
	for round := range 2 { // the second time the scripts are known
		for source, want := range map[string]driver.Reply{
			"return 1":                       number(1),
			"return nil":                     {},
			"":                               {},
			"return ''":                      text(""),
			"return 'a\\r\\nb\\0c'":          text("a\r\nb\x00c"),
			"return redis.status_reply('x')": text("x"),
			"return {}":                      list(),
			"return {1, 'two', false, 3}":    list(number(1), text("two"), driver.Reply{}, number(3)),
			"return string.rep('x', 100000)": text(strings.Repeat("x", 100000)),
			"return {KEYS[1], #KEYS, #ARGV, ARGV[1], ARGV[2]}":   list(text(key), number(1), number(2), text(""), text("\xff")),
			"redis.call('set', KEYS[1], ARGV[2]) return ARGV[2]": text("\xff"),
		} {
			got, acked, err := e.ack(e.r, e.script(source), []string{key}, []string{"", "\xff"}, 1, moment)
			if err != nil || !reflect.DeepEqual(got, want) {
				e.Errorf("round %d, %s: got %.100v, %v; want %.100v", round, source, got, err, want)
			}
			if acked < 0 || acked > n {
				e.Errorf("round %d, %s: %d replicas of %d have acknowledged", round, source, acked, n)
			}
		}
	}
}

func testAckedUnknownScript(e *env) {
	counter, key := e.counter()
	e.server.do("SCRIPT", "FLUSH")
	e.proxy.Record(true)
	for i := range 3 {
		got, err := e.runAcked(e.r, counter, []string{key}, nil)
		if err != nil || got.Int != int64(i+1) {
			e.Fatalf("run %d answered %v, %v", i, got, err)
		}
	}
	e.haveSent(counter, 3, 1)
}

// haveSent checks how often a script was sent by its name, and in full.
func (e *env) haveSent(s *driver.Script, wantName, wantFull int) {
	e.Helper()
	if evalsha, eval := e.sent(s); evalsha != wantName || eval != wantFull {
		e.Errorf("EVALSHA was sent %d times and EVAL %d times, want %d and %d", evalsha, eval, wantName, wantFull)
	}
}

func testAckedErrorCodes(e *env) {
	key := e.prefix + "string"
	e.server.do("SET", key, "x")
	for source, code := range map[string]string{
		"return redis.call('hget', KEYS[1], 'f')":  "WRONGTYPE",
		"return redis.error_reply('MINE is this')": "MINE",
		"error('raised')":                          "ERR",
		"this is no Lua":                           "ERR",
	} {
		_, err := e.runAcked(e.r, e.script(source), []string{key}, nil)
		e.failed(err, driver.Refused, code)
	}
	for code, c := range errorCodes() {
		r := e.open(e.answering(c.text), long)
		_, err := e.runAcked(r, e.script("return 1"), []string{key}, nil)
		e.failed(err, c.outcome, code)
	}
}

func testAckedNothingListens(e *env) {
	r := e.open(heldport.Refusing(e), short)
	_, err := e.runAcked(r, e.script("return 1"), []string{e.prefix}, nil)
	e.failed(err, driver.NotExecuted, "")
	_, err = e.acker(r).Replicas(context.Background(), e.prefix)
	e.failed(err, driver.NotExecuted, "")
}

func testAckedRequestLate(e *env) {
	counter, key := e.counter()
	e.run(counter, []string{key}, nil)
	var held faultnet.Held
	e.proxy.Record(true)
	e.proxy.SetRule(faultnet.First(is(counter), faultnet.Hold(&held)))
	_, err := e.runAcked(e.r, counter, []string{key}, nil)
	e.failed(err, driver.Unknown, "")
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if reply, err := held.Deliver(ctx); err != nil || reply != ":2\r\n" {
		e.Errorf("the late request was answered with %q, %v", reply, err)
	}
	e.haveSent(counter, 1, 0)
}

// A server that falls silent before the reply, and one that does so behind it.
func testAckedSilence(e *env) {
	counter, key := e.counter()
	e.run(counter, []string{key}, nil)
	e.proxy.Record(true)
	for _, at := range []func(faultnet.Request) bool{is(counter), isWait} {
		e.eventually("it falls silent", func() bool { // a busy machine may not have sent anything in time
			var silent atomic.Bool
			e.proxy.SetRule(faultnet.First(func(r faultnet.Request) bool {
				if !at(r) {
					return false
				}
				silent.Store(true)
				return true
			}, faultnet.StallReply))
			_, err := e.runAcked(e.r, counter, []string{key}, nil)
			if silent.Load() {
				e.failed(err, driver.Unknown, "")
			}
			return silent.Load()
		})
	}
	e.proxy.SetRule(faultnet.First(func(r faultnet.Request) bool { return r.Args[0] == "ROLE" }, faultnet.StallReply))
	start := time.Now()
	_, _ = e.acker(e.r).Replicas(context.Background(), key) // it may ask twice
	e.inTime("Replicas", start, e.r.Traits().Timeout)
	e.proxy.SetRule(nil)
	e.recovers(e.script("return 1"))
	evalsha, eval := e.sent(counter)
	if n := e.executed(key); n != strconv.Itoa(1+evalsha) || evalsha < 2 || eval != 0 {
		e.Errorf("EVALSHA was sent %d times, want at least 2, and EVAL %d times; the script was executed %s times, once before", evalsha, eval, n)
	}
}

func isWait(r faultnet.Request) bool { return r.Args[0] == "WAIT" }

// When the answer to WAIT is lost nobody knows any more what the primary's word is
// worth: it may have been its last.
func testAckedWaitLost(e *env) {
	counter, key := e.counter()
	e.run(counter, []string{key}, nil)
	e.proxy.Record(true)
	for range 3 {
		e.proxy.SetRule(faultnet.First(isWait, faultnet.DropReply))
		_, err := e.runAcked(e.r, counter, []string{key}, nil)
		e.failed(err, driver.Unknown, "")
		e.recovers(e.script("return 1"))
	}
	if n := e.executed(key); n != "4" {
		e.Errorf("the script was executed %s times, want 4", n)
	}
	e.haveSent(counter, 3, 0)
}

func testAckedBrokenUnderLoad(e *env) {
	e.brokenUnderLoad(func(s *driver.Script, keys []string, id string) []error {
		_, err := e.runAcked(e.r, s, keys, []string{id})
		return []error{err}
	})
}

// A server that does not know WAIT, or forbids it, has executed the script all the
// same.
func testAckedCannotWait(e *env) {
	for text, cannot := range map[string]bool{
		"ERR unknown command `WAIT`, with args beginning with: `1`, `10`, ":                            true,
		"ERR unknown command 'WAIT', with args beginning with: '1' '10' ":                              true,
		"NOPERM this user has no permissions to run the 'wait' command or its subcommand":              true,
		"NOPERM User default has no permissions to run the 'wait' command":                             true,
		"UNBLOCKED client unblocked via CLIENT UNBLOCK":                                                false,
		"UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)": false,
	} {
		counter, key := e.counter()
		e.server.do("DEL", key)
		r := e.open(e.answeringTo("-"+text+"\r\n", "WAIT"), long)
		for i := range int64(2) {
			reply, acked, err := e.ack(r, counter, []string{key}, nil, 1, moment)
			if err != nil || reply.Int != i+1 || acked < 0 != cannot || acked > 0 {
				e.Errorf("%s: got %v, acknowledged by %d, %v", text, reply, acked, err)
			}
		}
	}
}

func testAckedNoRole(e *env) {
	for _, test := range []struct {
		answer  string
		outcome driver.Outcome
		code    string
	}{
		{"-NOPERM User default has no permissions to run the 'role' command\r\n", driver.Refused, "NOPERM"},
		{"-ERR unknown command 'ROLE', with args beginning with: \r\n", driver.Refused, "ERR"},
		{"-LOADING Redis is loading the dataset in memory\r\n", driver.NotExecuted, "LOADING"},
		{"*5\r\n$5\r\nslave\r\n$9\r\n127.0.0.1\r\n:6379\r\n$9\r\nconnected\r\n:1\r\n", driver.NotExecuted, "READONLY"},
		{"*2\r\n$8\r\nsentinel\r\n*0\r\n", driver.NotExecuted, "READONLY"},
	} {
		r := e.open(e.answeringTo(test.answer, "ROLE"), long)
		_, err := e.acker(r).Replicas(context.Background(), e.prefix)
		e.failed(err, test.outcome, test.code)
	}
}

// mostConnections is how many a driver may use at a time to wait for replicas.
const mostConnections = 128

func testAckedConnections(e *env) {
	e.linked() // a server without replicas takes 100 ms to wait for one millisecond
	counter, key := e.counter()
	e.proxy.Record(true)
	for i := range 1000 {
		// A timeout of a microsecond is one millisecond for the server.
		if _, _, err := e.ack(e.r, counter, []string{key}, nil, 1, time.Microsecond); err != nil {
			e.Fatalf("run %d: %v", i, err)
		}
	}
	if n := e.connections(); n > 4 {
		e.Errorf("a thousand runs in turn have used %d connections", n)
	}
	var wg sync.WaitGroup
	end := time.Now().Add(patience)
	for range 2 * mostConnections {
		wg.Go(func() {
			for {
				_, err := e.runAcked(e.r, counter, []string{key}, nil)
				var re *driver.RunError
				if errors.As(err, &re) && re.Outcome == driver.NotExecuted && time.Now().Before(end) {
					continue // it has waited for a connection too long
				}
				if err != nil {
					e.Error(err)
				}
				return
			}
		})
	}
	wg.Wait()
	if n := e.connections(); n > mostConnections {
		e.Errorf("%d runs at a time have used %d connections, want %d at most", 2*mostConnections, n, mostConnections)
	}
	if got := e.run(counter, []string{key}, nil); got.Int != 1000+2*mostConnections+1 {
		e.Errorf("executed %d times", got.Int)
	}
}

// connections returns how many connections have carried a request.
func (e *env) connections() int {
	seen := make(map[int]bool)
	for _, r := range e.proxy.Requests() {
		seen[r.Conn] = true
	}
	return len(seen)
}

// linked starts the server's replicas, unless they run, and waits until it has all
// of them, and they have heard of all that has happened. It returns how many they
// are, or 0 if there can be none.
func (e *env) linked() int {
	e.Helper()
	if e.at.Replicas == nil {
		return 0
	}
	if e.replicas == nil {
		e.replicas = e.at.Replicas()
	}
	n := len(e.replicas)
	change := e.script("redis.call('incr', KEYS[1]) return 'changed'")
	e.eventually("all replicas acknowledge", func() bool {
		_, acked, err := e.ack(e.r, change, []string{e.prefix + "linked"}, nil, n, time.Second)
		return err == nil && acked == n
	})
	return n
}

func testReplicasCounted(e *env) {
	n := e.linked()
	if n == 0 {
		return
	}
	counter, key := e.counter()
	e.counts(n)
	quiet := e.script("redis.call('incr', KEYS[1]) return nil")
	e.eventually("all replicas acknowledge what answers nil", func() bool {
		_, acked, err := e.ack(e.r, quiet, []string{key}, nil, n, time.Second)
		return err == nil && acked == n
	})
	for i, r := range e.replicas {
		r.Pause()
		_, acked, err := e.ack(e.r, counter, []string{key}, nil, n, 5*moment)
		if err != nil || acked > n-i-1 {
			e.Errorf("%d of %d replicas stand still: acknowledged by %d, %v", i+1, n, acked, err)
		}
		rest := n - i - 1
		e.eventually("those that are left acknowledge", func() bool {
			_, acked, err := e.ack(e.r, counter, []string{key}, nil, rest, time.Second)
			return err == nil && acked == rest
		})
		e.counts(n) // the primary has not noticed
	}
	for _, r := range e.replicas {
		r.Resume()
	}
	e.linked()
}

// counts checks how many replicas the driver counts.
func (e *env) counts(want int) {
	e.Helper()
	if n, err := e.acker(e.r).Replicas(context.Background(), e.prefix); err != nil || n != want {
		e.Errorf("Replicas: %d, %v; want %d", n, err, want)
	}
}

// pauses lets all replicas stand still, until the test is over or resume is
// called.
func (e *env) pauses() (resume func()) {
	for _, r := range e.replicas {
		r.Pause()
	}
	resume = sync.OnceFunc(func() {
		for _, r := range e.replicas {
			r.Resume()
		}
	})
	e.Cleanup(resume)
	return resume
}

// The timeout is kept if the driver's own leave room for it, and else shortened.
func testReplicaSilent(e *env) {
	if e.linked() == 0 {
		return
	}
	resume := e.pauses()
	counter, key := e.counter()
	for _, timeout := range []time.Duration{50 * time.Millisecond, time.Hour, 50 * time.Millisecond} {
		start := time.Now()
		_, acked, err := e.ack(e.r, counter, []string{key}, nil, 1, timeout)
		if d := time.Since(start); err != nil || acked != 0 || d < 40*time.Millisecond { // clocks are coarse
			e.Errorf("timeout %v: acknowledged by %d, %v, after %v", timeout, acked, err, d)
		}
	}
	resume()
	e.linked()
}

// A server that does not know the script answers only after it has waited for what
// the connection did before.
func testReplicaSilentFallback(e *env) {
	if e.linked() == 0 {
		return
	}
	resume := e.pauses()
	counter, key := e.counter()
	if _, _, err := e.ack(e.r, counter, []string{key}, nil, 1, moment); err != nil {
		e.Error(err)
	}
	e.server.do("SCRIPT", "FLUSH")
	reply, acked, err := e.ack(e.r, counter, []string{key}, nil, 1, time.Hour)
	if err != nil || acked != 0 || reply.Int < 2 {
		e.Errorf("got %v, acknowledged by %d, %v", reply, acked, err)
	}
	resume()
	e.linked()
}

// While many wait for replicas, other scripts are answered and messages arrive:
// they share no connection with those who wait, who here get no answer.
func testAckedDelays(e *env) {
	channel := e.prefix + "channel"
	a, _ := e.listen(channel, false)
	a.confirmed(1)
	counter, key := e.counter()
	other := []string{e.prefix + "other"}
	e.run(counter, other, nil)
	e.proxy.SetRule(func(r faultnet.Request) faultnet.Action {
		if isWait(r) {
			return faultnet.StallReply
		}
		return faultnet.Pass
	})
	var wg sync.WaitGroup
	var back atomic.Int64 // of those who have waited
	for range 3 * mostConnections {
		wg.Go(func() {
			_, err := e.runAcked(e.r, counter, []string{key}, nil)
			var re *driver.RunError
			switch {
			case errors.As(err, &re) && re.Outcome == driver.NotExecuted: // has only waited for a connection
			case err != nil && (re == nil || re.Outcome != driver.Unknown):
				e.Error(err)
			default:
				back.Add(1)
			}
		})
	}
	e.eventually("some wait", func() bool { return e.executed(key) != "0" })
	for range 20 {
		e.run(counter, other, nil)
	}
	e.server.do("PUBLISH", channel, "m")
	a.hears("m")
	if n := back.Load(); n > 0 {
		e.Errorf("%d did not wait for an answer to the end of the test", n)
	}
	e.proxy.SetRule(nil)
	e.proxy.BreakAll()
	wg.Wait()
	e.recovers(e.script("return 1"))
}
