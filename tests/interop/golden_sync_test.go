package interop

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/tests/internal/golden"
	"github.com/redlatch/redlatch/tests/interop/peer"
)

// syncs are the kinds of what is not a lock.
var syncs = []string{peer.Semaphore, peer.Permits, peer.Latch, peer.RateLimiter}

func n(n int) golden.Args           { return golden.Args{N: n} }
func ids(ids ...string) golden.Args { return golden.Args{IDs: ids} }
func rateOf(n int, interval time.Duration) golden.Args {
	return golden.Args{N: n, IntervalMs: interval.Milliseconds()}
}

func keptAlive(a golden.Args, d time.Duration) golden.Args {
	a.KeepAliveMs = d.Milliseconds()
	return a
}

var semaphoreLives = []syncLife{
	{steps: []golden.Step{
		{Do: "tryAcquire", Thread: "t1", Args: n(1)},
		{Do: "available", Thread: "t1"},
		{Do: "release", Thread: "t1", Args: n(2)},
		{Do: "trySetPermits", Thread: "t1", Args: n(9)},
		{Do: "acquire", Thread: "t1", Args: n(2)},
		{Do: "tryAcquire", Thread: "t2", Args: n(1)},
		{Do: "tryAcquire", Thread: "t2"},
		{Do: "waits acquire", Thread: "t2", Args: n(1)},
		{Do: "waits acquire", Thread: "t3", Args: n(2)},
		{Do: "release", Thread: "t1", Args: n(1), Then: "t2"},
		{Do: "release", Thread: "t1", Args: n(3), Then: "t3"},
		{Do: "addPermits", Thread: "t1", Args: n(4)},
		{Do: "available", Thread: "t2"},
		{Do: "addPermits", Thread: "t1", Args: n(-15)},
		{Do: "release", Thread: "t1", Args: n(1)},
		{Do: "tryAcquire", Thread: "t2", Args: n(1)},
		{Do: "available", Thread: "t2"},
		{Do: "drain", Thread: "t1"},
		{Do: "drain", Thread: "t1"},
		{Do: "addPermits", Thread: "t1", Args: n(3)},
		{Do: "drain", Thread: "t1"},
		{Do: "delete", Thread: "t1"},
		{Do: "delete", Thread: "t1"},
		{Do: "drain", Thread: "t1"},
	}},
	{steps: []golden.Step{
		{Do: "trySetPermits", Thread: "t1", Args: n(5)},
		{Do: "delete", Thread: "t1"},
		{Do: "addPermits", Thread: "t1", Args: n(2)},
		{Do: "delete", Thread: "t1"},
	}},
	{newest: true, steps: []golden.Step{
		{Do: "releaseIfExists", Thread: "t1", Args: n(1)},
		{Do: "trySetPermits", Thread: "t1", Args: n(3), LeaseMs: 60_000},
		{Do: "trySetPermits", Thread: "t1", Args: n(4), LeaseMs: 10_000},
		{Do: "releaseIfExists", Thread: "t1", Args: n(1)},
		{Do: "tryAcquire", Thread: "t1", Args: n(4)},
		{Do: "release", Thread: "t1", Args: n(2)},
		{Do: "addPermits", Thread: "t1", Args: n(1), Differs: "no change touches the TTL"},
		{Do: "delete", Thread: "t1"},
	}},
}

var permitsLives = []syncLife{
	{steps: []golden.Step{
		{Do: "tryAcquire", Thread: "t1", Args: n(1), LeaseMs: 60_000},
		{Do: "available", Thread: "t1"},
		{Do: "trySetPermits", Thread: "t1", Args: n(2)},
		{Do: "trySetPermits", Thread: "t1", Args: n(5)},
		{Do: "acquire", Thread: "t1", Args: n(1), LeaseMs: 60_000},
		{Do: "tryAcquire", Thread: "t2", Args: n(1), LeaseMs: 20_000},
		{Do: "tryAcquire", Thread: "t3", Args: n(1), LeaseMs: 60_000},
		{Do: "available", Thread: "t1"},
		{Do: "extend", Thread: "t2", Args: ids("p2"), LeaseMs: 60_000},
		{Do: "waits acquire", Thread: "t3", Args: n(1), LeaseMs: 60_000},
		{Do: "release", Thread: "t1", Args: ids("p1"), Then: "t3"},
		{Do: "release", Thread: "t1", Args: ids("p1")},
		{Do: "tryRelease", Thread: "t1", Args: ids("p1")},
		{Do: "extend", Thread: "t1", Args: ids("p1"), LeaseMs: 60_000},
		{Do: "addPermits", Thread: "t1", Args: n(3)},
		{Do: "addPermits", Thread: "t1", Args: n(2)},
		{Do: "available", Thread: "t1"},
		{Do: "addPermits", Thread: "t1", Args: n(-1)},
		{Do: "tryRelease", Thread: "t2", Args: ids("p2")},
		{Do: "release", Thread: "t3", Args: ids("p3")},
		{Do: "addPermits", Thread: "t1", Args: n(-9)},
		{Do: "available", Thread: "t1"},
		{Do: "tryAcquire", Thread: "t3", Args: n(1), LeaseMs: 60_000},
		{Do: "delete", Thread: "t1"},
		{Do: "delete", Thread: "t1"},
	}},
	{steps: []golden.Step{
		{Do: "trySetPermits", Thread: "t1", Args: n(1)},
		{Do: "acquire", Thread: "t1", Args: n(1), LeaseMs: 500},
		{Do: "pause", Thread: "t1", WaitMs: 600, Differs: "who lives gives back what it does not trust any more"},
		{Do: "tryAcquire", Thread: "t2", Args: n(1), LeaseMs: 500},
		{Do: "pause", Thread: "t1", WaitMs: 600},
		{Do: "available", Thread: "t1"},
		{Do: "tryRelease", Thread: "t2", Args: ids("p2")},
		{Do: "delete", Thread: "t1"},
	}},
	{steps: []golden.Step{
		{Do: "trySetPermits", Thread: "t1", Args: n(1)},
		{Do: "acquire", Thread: "t1", Args: n(1), Differs: "the watchdog keeps it"},
		{Do: "tryAcquire", Thread: "t2", Args: n(1), LeaseMs: 60_000},
		{Do: "delete", Thread: "t1"},
	}},
	{newest: true, steps: []golden.Step{
		{Do: "setPermits", Thread: "t1", Args: n(3)},
		{Do: "acquire", Thread: "t1", Args: n(2), LeaseMs: 60_000},
		{Do: "tryAcquire", Thread: "t2", Args: n(2), LeaseMs: 60_000},
		{Do: "acquired", Thread: "t2"},
		{Do: "permits", Thread: "t2"},
		{Do: "tryRelease", Thread: "t1", Args: ids("p1", "p2")},
		{Do: "release", Thread: "t1", Args: ids("p1", "p2")},
		{Do: "setPermits", Thread: "t1", Args: n(5)},
		{Do: "setPermits", Thread: "t1", Args: n(5)},
		{Do: "tryAcquire", Thread: "t2", Args: n(3), LeaseMs: 60_000},
		{Do: "setPermits", Thread: "t1", Args: n(1)},
		{Do: "permits", Thread: "t2"},
		{Do: "release", Thread: "t2", Args: ids("p3"), Differs: "it tells nobody that nothing is free"},
		{Do: "delete", Thread: "t1"},
	}},
}

var latchLives = []syncLife{
	{steps: []golden.Step{
		{Do: "count", Thread: "t1"},
		{Do: "await", Thread: "t1"},
		{Do: "countDown", Thread: "t1"},
		{Do: "trySetCount", Thread: "t1", Args: n(2)},
		{Do: "trySetCount", Thread: "t1", Args: n(3)},
		{Do: "count", Thread: "t2"},
		{Do: "waits await", Thread: "t2"},
		{Do: "waits await", Thread: "t3"},
		{Do: "countDown", Thread: "t1"},
		{Do: "countDown", Thread: "t1", Then: "t2 t3"},
		{Do: "count", Thread: "t2"},
		{Do: "trySetCount", Thread: "t2", Args: n(1)},
		{Do: "countDown", Thread: "t1"},
		{Do: "delete", Thread: "t1"},
		{Do: "trySetCount", Thread: "t1", Args: n(1)},
		{Do: "delete", Thread: "t1", Differs: "who waits for what is deleted goes on"},
	}},
}

var rateLives = []syncLife{
	{steps: []golden.Step{
		{Do: "tryAcquire", Thread: "t1", Args: n(1)},
		{Do: "config", Thread: "t1"},
		{Do: "trySetRate", Thread: "t1", Args: rateOf(5, time.Minute)},
		{Do: "trySetRate", Thread: "t1", Args: rateOf(9, time.Second)},
		{Do: "config", Thread: "t1"},
		{Do: "tryAcquire", Thread: "t1", Args: n(2)},
		{Do: "available", Thread: "t1"},
		{Do: "tryAcquire", Thread: "t2", Args: n(4)},
		{Do: "tryAcquire", Thread: "t2", Args: n(1)},
		{Do: "tryAcquire", Thread: "t2", Args: n(6)},
		{Do: "setRate", Thread: "t1", Args: rateOf(7, time.Minute)},
		{Do: "acquire", Thread: "t1", Args: n(7)},
		{Do: "tryAcquire", Thread: "t1", Args: n(1)},
		{Do: "delete", Thread: "t1"},
		{Do: "delete", Thread: "t1"},
		{Do: "setRate", Thread: "t1", Args: rateOf(7, time.Minute)},
		{Do: "available", Thread: "t1", Differs: "it only looks"},
		{Do: "delete", Thread: "t1"},
	}},
	{steps: []golden.Step{ // what has left the interval
		{Do: "trySetRate", Thread: "t1", Args: rateOf(4, 2*time.Second)},
		{Do: "tryAcquire", Thread: "t1", Args: n(3)},
		{Do: "pause", Thread: "t1", WaitMs: 2100},
		{Do: "tryAcquire", Thread: "t1", Args: n(2)},
		{Do: "tryAcquire", Thread: "t1", Args: n(3)},
		{Do: "delete", Thread: "t1"},
	}},
	{steps: []golden.Step{
		{Do: "trySetRate", Thread: "t1", Args: golden.Args{N: 3, IntervalMs: 60_000, PerClient: true}},
		{Do: "tryAcquire", Thread: "t1", Args: n(1)},
		{Do: "tryAcquire", Thread: "t1", Args: n(2)},
		{Do: "tryAcquire", Thread: "t1", Args: n(1)},
		{Do: "available", Thread: "t1"},
		{Do: "delete", Thread: "t1"},
	}},
	{newest: true, steps: []golden.Step{
		{Do: "trySetRate", Thread: "t1", Args: keptAlive(rateOf(3, time.Second), time.Minute)},
		{Do: "tryAcquire", Thread: "t1", Args: n(2)},
		{Do: "setRate", Thread: "t1", Args: keptAlive(rateOf(5, time.Minute), 2*time.Minute)},
		{Do: "tryAcquire", Thread: "t1", Args: n(2)},
		{Do: "tryAcquire", Thread: "t1", Args: n(4)},
		{Do: "release", Thread: "t1", Args: n(1), Differs: "what is given back leaves the records, too"},
		{Do: "delete", Thread: "t1"},
	}},
	{newest: true, steps: []golden.Step{
		{Do: "updateRate", Thread: "t1", Args: rateOf(5, time.Minute)},
		{Do: "trySetRate", Thread: "t1", Args: rateOf(5, time.Minute)},
		{Do: "tryAcquire", Thread: "t1", Args: n(2)},
		{Do: "updateRate", Thread: "t1", Args: rateOf(7, time.Minute)},
		{Do: "tryAcquire", Thread: "t1", Args: n(4)},
		{Do: "updateRate", Thread: "t1", Args: keptAlive(rateOf(9, time.Minute), 2*time.Minute)},
		{Do: "tryAcquire", Thread: "t1", Args: n(4)},
		{Do: "updateRate", Thread: "t1", Args: golden.Args{N: 9, IntervalMs: 60_000, KeepAliveMs: 120_000, PerClient: true}},
		{Do: "tryAcquire", Thread: "t1", Args: n(4)},
		{Do: "updateRate", Thread: "t1", Args: keptAlive(rateOf(3, time.Minute), 2*time.Minute)},
		{Do: "delete", Thread: "t1"},
	}},
	{newest: true, steps: []golden.Step{
		{Do: "trySetRate", Thread: "t1", Args: rateOf(5, time.Minute)},
		{Do: "tryAcquire", Thread: "t1", Args: n(4)},
		{Do: "updateRate", Thread: "t1", Args: rateOf(3, time.Minute), Differs: "nor do the records have more than the rate"},
		{Do: "delete", Thread: "t1"},
	}},
}

type syncLife struct {
	newest bool // only the newest Redisson can do it
	steps  []golden.Step
}

// TestGoldenSync is TestGolden for what is not a lock.
func TestGoldenSync(t *testing.T) {
	needsServers(t)
	t.Parallel()
	for kind, lives := range map[string][]syncLife{
		peer.Semaphore: semaphoreLives, peer.Permits: permitsLives, peer.Latch: latchLives, peer.RateLimiter: rateLives,
	} {
		for _, version := range versions {
			t.Run(kind+"/"+version, func(t *testing.T) {
				t.Parallel()
				got := newRecording(t, version, kind)
				for _, l := range lives {
					for _, name := range familyNames {
						if version == peer.Newest || !l.newest {
							got.add(kind, name, defaultWatchdog, l.steps)
						}
					}
				}
				got.compare()
			})
		}
	}
}

// counted are the methods that return a number.
var counted = []string{"available", "drain", "tryRelease", "acquired", "permits", "count", "config"}

// call performs a step of what is not a lock.
func (r *recorder) call(s *golden.Step) {
	r.t.Helper()
	method, waits := strings.CutPrefix(s.Do, "waits ")
	interval, keepAlive := time.Duration(s.IntervalMs)*time.Millisecond, time.Duration(s.KeepAliveMs)*time.Millisecond
	c := peer.Call{
		Op: r.kind + "." + method, N: s.N,
		Wait: time.Duration(s.WaitMs) * time.Millisecond, Lease: time.Duration(s.LeaseMs) * time.Millisecond,
		Rate: peer.Rate{Interval: interval, KeepAlive: keepAlive, PerClient: s.PerClient},
	}
	for _, called := range s.IDs {
		for id, name := range r.m.ids {
			if name == "<"+called+">" {
				c.IDs = append(c.IDs, hex.EncodeToString([]byte(id)))
			}
		}
	}
	call := func() error {
		a, err := r.java.Thread(s.Thread).Call(r.ctx, r.name, c)
		r.got <- a
		return err
	}
	a, err := peer.Answer{OK: true}, error(nil)
	switch {
	case waits:
		r.waits(s.Thread, channelOf(r.kind, r.name, ""), call)
	case method == "pause":
		time.Sleep(c.Wait)
	default:
		err = call()
		a = <-r.got
	}
	for range strings.FieldsSeq(s.Then) {
		a.IDs = append(a.IDs, (<-r.got).IDs...)
	}
	for _, id := range a.IDs {
		raw, err := hex.DecodeString(id)
		if err != nil {
			r.t.Fatal(err)
		}
		called := "p" + strconv.Itoa(len(r.m.ids)+1)
		r.m.ids[string(raw)] = "<" + called + ">"
		s.Gets = append(s.Gets, called)
	}
	result := strconv.FormatBool(a.OK)
	if slices.Contains(counted, method) {
		result = strconv.Itoa(a.Count)
	}
	r.done(s, result, err)
}

// random names what Redisson rolls dice for: ids of permits, and the records of
// rate limiters.
func (m *monitor) random(a string) string {
	if name := m.ids[a]; name != "" {
		return name
	}
	switch record := len(a) - 5; { // random bytes with their number before and how many permits behind them
	case m.w.kind == peer.RateLimiter && (record == 8 || record == 16) && int(a[0]) == record:
		return fmt.Sprintf("<record:%d:%d>", record, binary.LittleEndian.Uint32([]byte(a[record+1:])))
	case m.w.kind == peer.Permits && len(a) == 16 && !isText(a):
		return "<id>"
	}
	return a
}

// withoutRandom hides what a rate limiter's records are made of, the last argument
// of who takes permits: how many, when, and the random bytes.
func (m *monitor) withoutRandom(args []string) []string {
	if m.w.kind != peer.RateLimiter || len(args) != 3 || !epoch.MatchString(args[1]) {
		return args
	}
	return []string{args[0], args[1], fmt.Sprintf("<random:%d>", len(args[2]))}
}

// isText says whether 16 bytes are no id. Once in many millions it is wrong.
func isText(a string) bool {
	return !strings.ContainsFunc(a, func(r rune) bool { return r < ' ' || r == '\uFFFD' })
}
