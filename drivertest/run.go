package drivertest

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"github.com/redlatch/redlatch/driver"
)

func testTraits(e *env) {
	got := e.r.Traits()
	if got.Name == "" {
		e.Error("Traits.Name is empty")
	}
	if got.Timeout <= 0 {
		e.Error("Traits.Timeout is 0: a dead connection would never be noticed")
	}
	if got.Timeout > patience {
		e.Errorf("Traits.Timeout is %v; with that the tests would take too long", got.Timeout)
	}
	if got.Cluster {
		e.Error("Traits.Cluster is set for a single server")
	}
	if again := e.r.Traits(); again != got {
		e.Errorf("Traits changed from %+v to %+v", got, again)
	}
}

func testNode(e *env) {
	for _, key := range []string{"a", "b", "", "{x}a", "redisson_lock__channel:{x}"} {
		if node := e.r.Node(key); node != "" {
			e.Errorf("Node(%q) = %q, want \"\" as there is one server", key, node)
		}
	}
}

func number(n int64) driver.Reply { return driver.Reply{Kind: driver.ReplyInt, Int: n} }
func text(s string) driver.Reply  { return driver.Reply{Kind: driver.ReplyString, Str: s} }
func list(l ...driver.Reply) driver.Reply {
	return driver.Reply{Kind: driver.ReplyList, List: append([]driver.Reply{}, l...)}
}

func testReplies(e *env) {
	long := make([]driver.Reply, 1000)
	for i := range long {
		long[i] = number(int64(i + 1))
	}
	for source, want := range map[string]driver.Reply{
		"return 1":                       number(1),
		"return 0":                       number(0),
		"return -9007199254740991":       number(-9007199254740991),
		"return true":                    number(1),
		"return false":                   {},
		"return nil":                     {},
		"":                               {},
		"return 'text'":                  text("text"),
		"return ''":                      text(""),
		"return '42'":                    text("42"),
		"return 'a\\r\\nb\\0c'":          text("a\r\nb\x00c"),
		"return redis.status_reply('x')": text("x"),
		"return {}":                      list(),
		"return {1, 'two', false, 3}":    list(number(1), text("two"), driver.Reply{}, number(3)),
		"return string.rep('x', 100000)": text(strings.Repeat("x", 100000)),
		"local l = {} for i = 1, 1000 do l[i] = i end return l": list(long...),
	} {
		got, err := e.attempt(e.r, e.script(source), nil, nil)
		if err != nil || !reflect.DeepEqual(got, want) {
			e.Errorf("%s: got %.100v, %v; want %.100v", source, got, err, want)
		}
	}
}

func testArguments(e *env) {
	echo := e.script("return {#KEYS, #ARGV, unpack(KEYS), unpack(ARGV)}")
	if got := e.run(echo, nil, nil); len(got.List) != 2 || got.List[0].Int != 0 || got.List[1].Int != 0 {
		e.Errorf("without keys and arguments the script saw %v", got)
	}
	keys := []string{e.prefix + "{x}\r\n\x00", e.prefix + "{x} ü"}
	args := []string{"", "7", "\xff\xfe", strings.Repeat("y", 70000)}
	echo = e.script("return {#KEYS, #ARGV, KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3], ARGV[4]}")
	got := e.run(echo, keys, args)
	if len(got.List) != 8 || got.List[0].Int != 2 || got.List[1].Int != 4 {
		e.Fatalf("the script saw %.200v", got)
	}
	for i, want := range append(append([]string{}, keys...), args...) {
		if s := got.List[2+i].Str; s != want {
			e.Errorf("word %d arrived as %.100q, want %.100q", i, s, want)
		}
	}
}

func testUnknownScript(e *env) {
	counter, key := e.counter()
	e.server.do("SCRIPT", "FLUSH")
	e.proxy.Record(true)
	for i := range 3 {
		if got := e.run(counter, []string{key}, nil); got.Int != int64(i+1) {
			e.Fatalf("run %d answered %v", i, got)
		}
	}
	if evalsha, eval := e.sent(counter); evalsha != 3 || eval != 1 {
		e.Errorf("three runs sent EVALSHA %d times and EVAL %d times, want 3 and 1", evalsha, eval)
	}
	e.server.do("SCRIPT", "FLUSH")
	if got := e.run(counter, []string{key}, nil); got.Int != 4 {
		e.Errorf("after SCRIPT FLUSH the script answered %v, want 4", got)
	}
}

func testConcurrent(e *env) {
	s := e.script("return {redis.call('incr', KEYS[1]), ARGV[1]}")
	key := e.prefix + "counter"
	const goroutines, runs = 64, 10
	seen := make([]map[int64]bool, goroutines)
	var wg sync.WaitGroup
	for g := range goroutines {
		seen[g] = make(map[int64]bool)
		wg.Go(func() {
			for i := range runs {
				me := fmt.Sprint(g, "-", i)
				got, err := e.attempt(e.r, s, []string{key}, []string{me})
				if err != nil || len(got.List) != 2 || got.List[1].Str != me {
					e.Errorf("%s got %v, %v", me, got, err)
					return
				}
				seen[g][got.List[0].Int] = true
			}
		})
	}
	wg.Wait()
	all := make(map[int64]bool)
	for _, m := range seen {
		for n := range m {
			all[n] = true
		}
	}
	if n := e.executed(key); len(all) != goroutines*runs || n != strconv.Itoa(goroutines*runs) {
		e.Errorf("%d runs got %d different replies, and %s were executed", goroutines*runs, len(all), n)
	}
}

// failed returns what Run said of a failure, and fails the test if that is not
// what the contract wants.
func (e *env) failed(err error, outcome driver.Outcome, code string) {
	e.Helper()
	var re *driver.RunError
	switch {
	case err == nil:
		e.Error("Run succeeded")
	case !errors.As(err, &re):
		e.Errorf("Run failed with %T (%v), want a *driver.RunError", err, err)
	case re.Outcome != outcome || re.Code != code:
		e.Errorf("Run failed as %q with code %q (%v), want %q with code %q", re.Outcome, re.Code, re.Err, outcome, code)
	case re.Err == nil:
		e.Error("RunError.Err is nil: the driver's own error is lost")
	}
}

func testRefused(e *env) {
	key := e.prefix + "string"
	e.server.do("SET", key, "x")
	for _, test := range []struct{ source, code string }{
		{"return redis.call('hget', KEYS[1], 'f')", "WRONGTYPE"},
		{"return redis.error_reply('MINE is this')", "MINE"},
		{"return redis.error_reply('ERR no')", "ERR"},
		{"error('raised')", "ERR"},
		{"return nosuchvariable", "ERR"},
		{"this is no Lua", "ERR"},
	} {
		_, err := e.attempt(e.r, e.script(test.source), []string{key}, nil)
		e.Logf("%s: %v", test.source, err)
		e.failed(err, driver.Refused, test.code)
	}
	e.run(e.script("return 1"), nil, nil) // the connection is as good as before
}

func testErrorCodes(e *env) {
	s := e.script("return 1")
	for code, c := range errorCodes() {
		r := e.open(e.answering(c.text), long)
		_, err := e.attempt(r, s, nil, nil)
		e.Logf("%s: %v", code, err)
		e.failed(err, c.outcome, code)
	}
}

// An errorCode is what a server says, and what became of the script then.
type errorCode struct {
	text    string
	outcome driver.Outcome
}

func errorCodes() map[string]errorCode {
	all := make(map[string]errorCode)
	for text, outcome := range map[string]driver.Outcome{
		"LOADING Redis is loading the dataset in memory":                                         driver.NotExecuted,
		"READONLY You can't write against a read only replica.":                                  driver.NotExecuted,
		"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.":       driver.NotExecuted,
		"CLUSTERDOWN The cluster is down":                                                        driver.NotExecuted,
		"TRYAGAIN Multiple keys request during rehashing of slot":                                driver.NotExecuted,
		"ERR Script attempted to access a non local key in a cluster node":                       driver.Unknown, // it may have written before
		"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.": driver.NotExecuted,
		"NOAUTH Authentication required.":                                                        driver.NotExecuted,
		"OOM command not allowed when used memory > 'maxmemory'.":                                driver.Refused,
		"MISCONF Redis is configured to save RDB snapshots, but it's unable to persist to disk.": driver.Refused,
		"NOREPLICAS Not enough good replicas to write.":                                          driver.Refused,
		"NOPERM User default has no permissions to run the 'evalsha' command":                    driver.Refused,
	} {
		code, _, _ := strings.Cut(text, " ")
		all[code] = errorCode{text, outcome}
	}
	return all
}
