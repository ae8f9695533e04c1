package drivertest

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/driver"
)

// An ear records what a handler is called with.
type ear struct {
	e    *env
	busy atomic.Bool

	mu      sync.Mutex
	notices []driver.Notice
}

func (a *ear) hear(n driver.Notice) {
	if !a.busy.CompareAndSwap(false, true) {
		a.e.Error("a handler was called while it was running")
	}
	a.mu.Lock()
	a.notices = append(a.notices, n)
	a.mu.Unlock()
	a.busy.Store(false)
}

// heard returns the number of confirmations, and the messages.
func (a *ear) heard() (confirmed int, messages []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, n := range a.notices {
		if n.Subscribed {
			confirmed++
		} else {
			messages = append(messages, n.Payload)
		}
	}
	return confirmed, messages
}

func (a *ear) first() driver.Notice {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.notices[0]
}

func (e *env) listen(channel string, sharded bool) (*ear, func()) {
	a := &ear{e: e}
	stop := e.r.Subscribe(channel, sharded, a.hear)
	e.Cleanup(stop)
	return a, stop
}

// confirmed waits for the n-th confirmation.
func (a *ear) confirmed(n int) {
	a.e.Helper()
	a.e.eventually(fmt.Sprintf("subscription confirmed, time %d", n), func() bool {
		got, _ := a.heard()
		return got >= n
	})
}

// hears waits until a message has arrived.
func (a *ear) hears(message string) {
	a.e.Helper()
	a.e.eventually("heard "+message, func() bool {
		_, got := a.heard()
		return slices.Contains(got, message)
	})
}

// subscribers waits until the server has n of them for a channel.
func (e *env) subscribers(channel string, n int) {
	e.Helper()
	e.eventually(fmt.Sprintf("%d subscriptions of %s at the server", n, channel), func() bool {
		return e.server.do("PUBSUB", "NUMSUB", channel) == strconv.Itoa(n)
	})
}

func testSubscription(e *env) {
	channel := e.prefix + "channel"
	a, stop := e.listen(channel, false)
	a.confirmed(1)
	unconfirmed(e.r, e, 0)
	e.subscribers(channel, 1)
	want := make([]string, 500)
	for i := range want {
		want[i] = strconv.Itoa(i)
		if n := e.server.do("PUBLISH", channel, want[i]); n != "1" {
			e.Fatalf("message %d went to %s subscribers", i, n)
		}
	}
	a.hears(want[len(want)-1])
	confirmed, got := a.heard()
	if !a.first().Subscribed || confirmed != 1 {
		e.Errorf("%d confirmations, the first notice is %+v", confirmed, a.first())
	}
	if !slices.Equal(got, want) {
		e.Errorf("messages arrived in another order, or not all: %v", got)
	}
	stop()
	stop()
	e.subscribers(channel, 0)
	e.server.do("PUBLISH", channel, "late")
	if _, got := a.heard(); len(got) != len(want) {
		e.Error("a message arrived after the end")
	}
}

// unconfirmed waits until so many channels are not confirmed, if the driver knows
// that.
func unconfirmed(r driver.Redis, e *env, want int) {
	e.Helper()
	s, ok := r.(driver.Subscriber)
	if !ok {
		return
	}
	e.eventually(fmt.Sprintf("%d channels unconfirmed", want), func() bool { return s.Unconfirmed(0) == want })
	if n := s.Unconfirmed(time.Hour); n != 0 {
		e.Errorf("%d channels are said to be unconfirmed for an hour", n)
	}
}

func testSubscribeWithoutServer(e *env) {
	channel := e.prefix + "channel"
	e.proxy.Blackhole(true)
	start := time.Now() // who waits for the server waits long
	e.r.Subscribe(channel, false, func(driver.Notice) {})()
	e.inTime("Subscribe with its end", start, 0)
	a, _ := e.listen(channel, false)
	b := &ear{e: e} // of a driver that has never seen the server
	r := e.open(e.addr, short)
	stop := r.Subscribe(channel, false, b.hear)
	e.Cleanup(stop)
	unconfirmed(e.r, e, 1)
	unconfirmed(r, e, 1)
	e.proxy.Blackhole(false)
	e.proxy.BreakAll()
	a.confirmed(1)
	b.confirmed(1)
	unconfirmed(e.r, e, 0)
	unconfirmed(r, e, 0)
	e.proxy.Blackhole(true)
	r2 := e.open(e.addr, short)
	stop2 := r2.Subscribe(channel, false, func(driver.Notice) {})
	unconfirmed(r2, e, 1)
	stop2()
	unconfirmed(r2, e, 0) // nobody listens
	e.proxy.Blackhole(false)
	e.proxy.BreakAll()
	a.confirmed(2)
}

func testSeveralSubscribers(e *env) {
	channel := e.prefix + "channel"
	a, stopA := e.listen(channel, false)
	a.confirmed(1)
	b, stopB := e.listen(channel, false)
	c, stopC := e.listen(channel, false)
	b.confirmed(1)
	c.confirmed(1)
	e.subscribers(channel, 1) // they share one
	listeners := func(want int) {
		if l, ok := e.r.(driver.Sharer); ok && (l.Listeners(channel, false) != want || l.Listeners(channel, true) != 0) {
			e.Errorf("%d listen, %d to the sharded channel, want %d and none", l.Listeners(channel, false), l.Listeners(channel, true), want)
		}
	}
	listeners(3)
	e.server.do("PUBLISH", channel, "all")
	for _, x := range []*ear{a, b, c} {
		x.hears("all")
	}
	stopA()
	listeners(2)
	e.server.do("PUBLISH", channel, "two")
	b.hears("two")
	c.hears("two")
	if _, got := a.heard(); len(got) != 1 {
		e.Errorf("a stopped subscriber heard %v", got)
	}
	stopC()
	e.server.do("PUBLISH", channel, "one")
	b.hears("one")
	stopB()
	listeners(0)
	e.subscribers(channel, 0)
	d, _ := e.listen(channel, false)
	d.confirmed(1)
	e.server.do("PUBLISH", channel, "again")
	d.hears("again")
}

func testManyChannels(e *env) {
	const n = 200
	ears, stops := make([]*ear, n), make([]func(), n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { ears[i], stops[i] = e.listen(e.prefix+strconv.Itoa(i), false) })
	}
	wg.Wait()
	for i, a := range ears {
		a.confirmed(1)
		e.server.do("PUBLISH", e.prefix+strconv.Itoa(i), strconv.Itoa(i))
	}
	for i, a := range ears {
		a.hears(strconv.Itoa(i))
		if _, got := a.heard(); len(got) != 1 {
			e.Errorf("channel %d heard %v", i, got)
		}
		if i%2 == 0 {
			stops[i]()
		}
	}
	for i, a := range ears {
		if i%2 == 0 {
			e.subscribers(e.prefix+strconv.Itoa(i), 0)
			continue
		}
		e.server.do("PUBLISH", e.prefix+strconv.Itoa(i), "more")
		a.hears("more")
	}
}

func testSubscribeAgainAndAgain(e *env) {
	channel := e.prefix + "channel"
	keep, _ := e.listen(e.prefix+"other", false)
	keep.confirmed(1)
	for i := range 100 {
		a, stop := e.listen(channel, false)
		if i%10 == 9 { // else it may be over before it has begun
			a.confirmed(1)
			e.server.do("PUBLISH", channel, "m")
			a.hears("m")
		}
		stop()
	}
	a, stop := e.listen(channel, false)
	a.confirmed(1)
	e.subscribers(channel, 1)
	e.server.do("PUBLISH", channel, "last")
	a.hears("last")
	stop()
	e.subscribers(channel, 0)
}

// A user may be denied a channel. Others that the program listens to have nothing
// to do with that.
func testSubscriptionRefused(e *env) {
	denied, before, after := e.prefix+"denied", e.prefix+"before", e.prefix+"after"
	r := e.open(e.refusing(denied), long)
	var breaks atomic.Int64
	defer r.OnBreak(func(string) { breaks.Add(1) })()
	listen := func(channel string) *ear {
		a := &ear{e: e}
		e.Cleanup(r.Subscribe(channel, false, a.hear))
		return a
	}
	a, no, b := listen(before), listen(denied), listen(after)
	a.confirmed(1)
	b.confirmed(1)
	c := listen(e.prefix + "later")
	c.confirmed(1)
	for i, x := range []*ear{a, b, c} {
		m := strconv.Itoa(i)
		e.server.do("PUBLISH", []string{before, after, e.prefix + "later"}[i], m)
		x.hears(m)
		if n, _ := x.heard(); n != 1 {
			e.Errorf("%d confirmations: the subscription was lost", n)
		}
	}
	unconfirmed(r, e, 1)
	if n, _ := no.heard(); n != 0 || breaks.Load() != 0 {
		e.Errorf("%d confirmations of what was refused, %d breaks reported", n, breaks.Load())
	}
}

func testStopInHandler(e *env) {
	channel := e.prefix + "channel"
	stops := make(chan func(), 1)
	var heard atomic.Int64
	stops <- e.r.Subscribe(channel, false, func(n driver.Notice) {
		if !n.Subscribed && heard.Add(1) == 1 {
			(<-stops)()
		}
	})
	e.subscribers(channel, 1)
	e.server.do("PUBLISH", channel, "1")
	e.subscribers(channel, 0)
	if n := heard.Load(); n != 1 {
		e.Errorf("heard %d messages, want 1", n)
	}
}

func testSubscriptionSurvivesBreak(e *env) {
	channel, other := e.prefix+"channel", e.prefix+"other"
	a, stop := e.listen(channel, false)
	b, _ := e.listen(other, false)
	a.confirmed(1)
	b.confirmed(1)
	for i := range 3 {
		before, _ := a.heard()
		beforeB, _ := b.heard()
		e.proxy.BreakAll()
		a.confirmed(before + 1)
		b.confirmed(beforeB + 1)
		m := "after break " + strconv.Itoa(i)
		e.server.do("PUBLISH", channel, m)
		e.server.do("PUBLISH", other, m)
		a.hears(m)
		b.hears(m)
	}
	stop()
	e.subscribers(channel, 0)
	e.server.do("PUBLISH", other, "end")
	b.hears("end")
}

// A connection that is silent and yet not closed must be found out as well.
func testSubscriptionSurvivesSilence(e *env) {
	channel := e.prefix + "channel"
	a, _ := e.listen(channel, false)
	a.confirmed(1)
	e.proxy.Blackhole(true)
	// In a black hole no connection gets anywhere, so give it up only when the
	// driver has: it opens a new one.
	e.eventually("the driver tries a new connection", func() bool {
		e.proxy.Record(true)
		for _, r := range e.proxy.Requests() {
			if r.Args[0] == "HELLO" || r.Args[0] == "AUTH" || r.Args[0] == "CLIENT" {
				return true
			}
		}
		return false
	})
	e.proxy.Blackhole(false)
	a.confirmed(2)
	e.server.do("PUBLISH", channel, "back")
	a.hears("back")
}

func testShardedSubscription(e *env) {
	if !e.at.Sharded {
		return
	}
	channel, other := e.prefix+"{a}", e.prefix+"{b}"
	a, stop := e.listen(channel, true)
	b, _ := e.listen(other, true)
	a.confirmed(1)
	b.confirmed(1)
	e.server.do("SPUBLISH", channel, "1")
	e.server.do("SPUBLISH", other, "2")
	a.hears("1")
	b.hears("2")
	e.server.do("PUBLISH", channel, "classic")
	before, _ := a.heard()
	e.proxy.BreakAll()
	a.confirmed(before + 1)
	e.server.do("SPUBLISH", channel, "3")
	a.hears("3")
	if _, got := a.heard(); !slices.Equal(got, []string{"1", "3"}) {
		e.Errorf("heard %v", got)
	}
	stop()
	e.eventually("no sharded subscription at the server", func() bool {
		return e.server.do("PUBSUB", "SHARDNUMSUB", channel) == "0"
	})
}

func testBreakIsReported(e *env) {
	var breaks, others atomic.Int64
	stop := e.r.OnBreak(func(node string) {
		if node != e.r.Node("key") {
			e.Errorf("a break of node %q", node)
		}
		breaks.Add(1)
	})
	stopOther := e.r.OnBreak(func(string) { others.Add(1) })
	s := e.script("return 1")
	a, _ := e.listen(e.prefix+"channel", false)
	a.confirmed(1)
	e.run(s, nil, nil)
	if n := breaks.Load(); n != 0 {
		e.Errorf("%d breaks reported, and there was none", n)
	}

	e.proxy.BreakAll() // nothing is in flight but the subscription
	e.eventually("the break is reported", func() bool { return breaks.Load() > 0 && others.Load() > 0 })
	stopOther()
	stopOther()
	var had int64
	for n := range 2 { // one that was just being told of the first may hear of it yet
		a.confirmed(2 + n)
		e.recovers(s)
		had = others.Load()
		before := breaks.Load()
		e.proxy.BreakAll()
		e.eventually("the next break is reported", func() bool { return breaks.Load() > before })
	}
	if others.Load() != had {
		e.Error("a break was reported to one who had unregistered")
	}
	stop()
}
