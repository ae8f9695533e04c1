package drivertest

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/redlatch/redlatch/driver"
)

// A name is an endpoint that leads to one server until it moves, and to another
// one then. Whoever was there before stays connected to the first.
type name struct {
	addr    string
	demoted atomic.Bool // the first server is no primary any longer
	moved   atomic.Bool
	stay    atomic.Int64 // how many are connected to the first server
}

// moving returns a name. The server that it leads to at first answers every script
// with an error when it is demoted.
func moving(e *env, text string) *name {
	e.Helper()
	n := new(name)
	n.addr = e.serving(func(c, up net.Conn) {
		first := !n.moved.Load()
		if first {
			n.stay.Add(1)
			defer n.stay.Add(-1)
		}
		relay(c, up, func(args []string) []string {
			if first && n.demoted.Load() && strings.HasPrefix(strings.ToUpper(args[0]), "EVAL") {
				return []string{"EVAL", "return redis.error_reply(ARGV[1])", "0", text}
			}
			return args
		})
	})
	return n
}

// testNameMoves is for a driver of one server whose name is given to another one,
// as when a replica has taken over: a driver that stayed where it was would be
// refused for as long as that server lives.
func testNameMoves(run way) func(*env) {
	return func(e *env) {
		if e.cfg.Stays {
			return
		}
		for _, text := range []string{
			"READONLY You can't write against a read only replica.",
			"MOVED 42 127.0.0.1:1",
			"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
		} {
			code, _, _ := strings.Cut(text, " ")
			for _, later := range []bool{false, true} {
				nameMoves(e, moving(e, text), code, later, run)
			}
		}
	}
}

// nameMoves tests it for one error. With later, the name leads to the first server
// for a while after that was demoted.
func nameMoves(e *env, n *name, code string, later bool, run way) {
	e.Helper()
	e.r = e.open(n.addr, long)
	counter, key := e.counter()
	t := &tally{key: fmt.Sprint(key, code, later)}
	count := func() bool { return e.note(t, driver.Reply{}, run(e, counter, []string{t.key})) == nil }
	var breaks atomic.Int64
	e.Cleanup(e.r.OnBreak(func(string) { breaks.Add(1) }))
	a, _ := e.listen(t.key, false)
	e.crowd(counter) // of connections
	e.eventually(code+": a script succeeds", count)
	a.confirmed(1)
	before := breaks.Load()

	n.demoted.Store(true)
	for i := 0; later && i < 3; i++ {
		if count() {
			e.Errorf("%s: a server that is no primary has executed a script", code)
		}
	}
	n.moved.Store(true)
	tries := 0
	e.eventually(code+": a script succeeds where the name leads now", func() bool { tries++; return count() })
	if tries > 10 {
		e.Errorf("%s: a script has succeeded at attempt %d", code, tries)
	}
	e.eventually(code+": nobody is connected to the server that is no primary", func() bool { return n.stay.Load() == 0 })
	a.confirmed(2)
	e.server.do("PUBLISH", t.key, "here")
	a.hears("here")
	if breaks.Load() == before {
		e.Errorf("%s: no break is reported", code)
	}
	for range 3 {
		if !count() {
			e.Errorf("%s: a script fails after one has succeeded", code)
		}
	}
	if got, _ := strconv.ParseInt(e.executed(t.key), 10, 64); got < t.ok || got > t.ok+t.unknown {
		e.Errorf("%s: %d executed, but %d succeeded and %d are unknown", code, got, t.ok, t.unknown)
	}
}
