package sim

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/redlatch/redlatch/driver"
)

const (
	patience = 300 * time.Millisecond // of a driver
	trip     = 400 * time.Microsecond // about how long a message is on its way
	latest   = 20 * time.Second       // what is late is later by less than that
)

var (
	errNetwork = errors.New("the network")
	errServer  = errors.New("the server")
)

// A weather is what one in so many requests, replies or messages meets on a link
// all the time. 0: none.
type weather struct {
	lost, slow, late int // requests and replies
	twice            int // requests: they are executed twice
	deaf             int // messages: lost, twice, or late
}

// newWeather returns one that chance decides.
func newWeather(c *chance) (air weather) {
	for _, part := range []struct {
		of   *int
		most int
	}{{&air.lost, 10}, {&air.slow, 5}, {&air.late, 20}, {&air.deaf, 10}, {&air.twice, 10}} {
		if c.n(3) > 0 {
			*part.of = part.most + c.n(50)
		}
	}
	return air
}

// A link is a process's way to the server that it takes for the primary. It is its
// driver.
type link struct {
	chance  *chance
	history *history

	mu        sync.Mutex
	at        *node
	subs      []*listener
	breaks    map[int]func(string)
	nth       int // of breaks
	air       weather
	toDeaf    time.Time // nothing goes to the server until then
	deaf      time.Time // nothing comes from it
	stands    time.Time // nothing goes, comes or is dropped: as if the process's host stood still
	dead      bool      // the process was killed
	straggles time.Time // requests are often late until then
	lost      int       // requests and replies
	late      int
	twice     int

	heard    time.Time // when the last answer came
	silences []silence // those before that were long

	tells func(news) // nil: nobody wants to know
}

func (l *link) tell(n news) {
	if l.tells != nil {
		l.tells(n)
	}
}

func newLink(c *chance, at *node, air weather, h *history) *link {
	return &link{chance: c, at: at, breaks: map[int]func(string){}, air: air, history: h, heard: time.Now()}
}

func (l *link) set(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
}

// A state is that of a link at a moment.
type state struct {
	at           *node
	air          weather
	toDeaf, deaf bool
	dead         bool
}

// ready waits until the link does not stand still.
func (l *link) ready() state {
	for {
		l.mu.Lock()
		now := time.Now()
		s, stands := state{l.at, l.air, now.Before(l.toDeaf), now.Before(l.deaf), l.dead}, l.stands.Sub(now)
		if now.Before(l.straggles) {
			s.air.late = 3
		}
		l.mu.Unlock()
		if stands <= 0 || s.dead {
			return s
		}
		time.Sleep(stands)
	}
}

func (l *link) travel() { time.Sleep(trip/4 + l.chance.upTo(trip)) }

func unknown() error     { return &driver.RunError{Outcome: driver.Unknown, Err: errNetwork} }
func notExecuted() error { return &driver.RunError{Outcome: driver.NotExecuted, Err: errNetwork} }

// Run sends a request, and waits for the answer as long as a driver does. What
// becomes of the request does not depend on whether anybody waits.
func (l *link) Run(_ context.Context, x *driver.Script, keys, args []string) (driver.Reply, error) {
	return l.run(x, keys, args, way{})
}

// A silence is a time for which no answer has come.
type silence struct{ from, to time.Time }

// hear notes that an answer has come, unless it is a refusal that passes.
func (l *link) hear(err error) {
	var refused *driver.RunError
	if errors.As(err, &refused) && (refused.Outcome != driver.Refused || refused.Code != "NOSCRIPT") {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if now.Sub(l.heard) > time.Second {
		l.silences = append(l.silences, silence{l.heard, now})
	}
	l.heard = now
}

// silence returns for how long, at most, no answer has come since then.
func (l *link) silence(since time.Time) (longest time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range append(l.silences, silence{l.heard, time.Now()}) {
		from := s.from
		if from.Before(since) {
			from = since
		}
		longest = max(longest, s.to.Sub(from))
	}
	return longest
}

// A way is how a request is sent.
type way struct {
	asking bool          // to where its slot moves
	within time.Duration // for how long the driver waits; 0: its patience
	// then is called, if it is not nil, when the script was executed at a server in
	// that epoch, and whether it wrote anything. It says whether an answer comes.
	then func(at *node, epoch int, wrote bool) bool
}

// run is Run.
func (l *link) run(x *driver.Script, keys, args []string, how way) (driver.Reply, error) {
	type answer struct {
		reply driver.Reply
		err   error
	}
	keys, args = slices.Clone(keys), slices.Clone(args)
	n := news{at: leaves, script: x.Name(), keys: keys, args: args, sent: time.Now()}
	l.tell(n)
	got := make(chan answer, 1)
	go func() {
		if r, err, ok := l.carry(x, keys, args, how); ok {
			got <- answer{r, err}
		}
	}()
	timer := time.NewTimer(cmp.Or(how.within, patience))
	defer timer.Stop()
	select {
	case a := <-got:
		l.hear(a.err)
		if a.err == nil {
			n.at, n.reply = answered, a.reply
			l.tell(n)
		}
		return a.reply, a.err
	case <-timer.C:
		return driver.Reply{}, unknown()
	}
}

// carry carries a request to the server and the answer back, and says whether it
// comes.
func (l *link) carry(x *driver.Script, keys, args []string, how way) (r driver.Reply, err error, comes bool) { //nolint:revive // err is the answer
	sent := time.Now()
	_, epoch, _ := l.ready().at.reachable()
	l.travel()
	s := l.ready()
	up, now, _ := s.at.reachable()
	switch {
	case s.dead:
		return r, nil, false
	case !up || now != epoch:
		return r, notExecuted(), true
	case s.toDeaf || l.chance.oneIn(s.air.lost):
		l.set(func() { l.lost++ })
		return r, nil, false
	case l.chance.oneIn(s.air.late):
		l.set(func() { l.late++ })
		time.Sleep(l.chance.upTo(latest))
	}
	if !s.at.arrive(epoch) {
		return r, nil, false
	}
	r, wrote, err := l.exec(s.at, x, keys, args, sent, how.asking)
	l.history.trace("script %s %q %q: %+v %v", x.Name(), keys, args, r, err)
	if how.then != nil && err == nil && !how.then(s.at, epoch, wrote) {
		return r, nil, false
	}
	if l.chance.oneIn(s.air.twice) {
		l.again(s.at, epoch, sent, 0, x, keys, args, how.asking)
	}
	if l.chance.oneIn(s.air.slow) { // it comes when the driver has nearly, or just, given it up
		time.Sleep(l.chance.upTo(patience + patience/5))
	}
	l.travel()
	back := l.ready()
	switch {
	case back.dead || back.at != s.at || back.deaf:
		return r, nil, false
	case l.chance.oneIn(s.air.lost):
		l.set(func() { l.lost++ })
		if s.air.twice > 0 && l.chance.oneIn(2) {
			late := l.chance.upTo(latest)
			go l.again(s.at, epoch, sent, late, x, keys, args, how.asking)
		}
		return r, unknown(), l.chance.oneIn(2) // the connection is closed, or there is silence
	}
	return r, err, true
}

// exec has a server execute a request.
func (l *link) exec(at *node, x *driver.Script, keys, args []string, sent time.Time, asking bool) (r driver.Reply, wrote bool, err error) {
	n := news{at: came, script: x.Name(), keys: keys, args: args, sent: sent}
	l.tell(n)
	if r, wrote, err = at.exec(x, keys, args, asking); err == nil {
		n.at, n.reply = executed, r
		l.tell(n)
	}
	return r, wrote, err
}

// again has a request executed once more, unless its server has ended meanwhile.
// Nobody hears the answer.
func (l *link) again(at *node, epoch int, sent time.Time, after time.Duration, x *driver.Script, keys, args []string, asking bool) {
	time.Sleep(after)
	if !at.arrive(epoch) {
		return
	}
	r, _, err := l.exec(at, x, keys, args, sent, asking)
	l.set(func() { l.twice++ })
	l.history.trace("script %s %q %q, %v later once more: %+v %v", x.Name(), keys, args, after, r, err)
}

// reconnect breaks all connections. They are made again, to another server if
// there is one.
func (l *link) reconnect(to *node) {
	l.mu.Lock()
	if l.dead {
		l.mu.Unlock()
		return
	}
	if to != nil {
		l.at = to
	}
	subs := slices.Clone(l.subs)
	l.mu.Unlock()
	for _, x := range subs {
		x.leave()
		go x.join()
	}
	l.tellBroken()
}

// tellBroken tells that the server of a link may be another one now.
func (l *link) tellBroken() {
	l.mu.Lock()
	var told []func(string)
	for _, n := range slices.Sorted(maps.Keys(l.breaks)) {
		told = append(told, l.breaks[n])
	}
	l.mu.Unlock()
	for _, f := range told {
		f("")
	}
}

// kill ends the process: nothing comes from it any more.
func (l *link) kill() {
	l.mu.Lock()
	l.dead = true
	subs := slices.Clone(l.subs)
	l.mu.Unlock()
	for _, x := range subs {
		x.leave()
	}
}

func (l *link) OnBreak(f func(node string)) (stop func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.nth++
	n := l.nth
	l.breaks[n] = f
	return func() { l.set(func() { delete(l.breaks, n) }) }
}

func (*link) Primaries(context.Context) ([]driver.Primary, error) { return nil, nil }
func (*link) Node(string) string                                  { return "" }
func (*link) Traits() driver.Traits                               { return driver.Traits{Name: "sim", Timeout: patience} }

// A listener is a subscription of a link.
type listener struct {
	l       *link
	channel string
	hear    func(driver.Notice)
	queue   chan driver.Notice
	over    chan struct{}
	at      *node // where it listens now; guarded by l.mu
}

func (l *link) Subscribe(channel string, _ bool, h func(driver.Notice)) (stop func()) {
	x := &listener{l: l, channel: channel, hear: h, queue: make(chan driver.Notice, 1000), over: make(chan struct{})}
	l.set(func() { l.subs = append(l.subs, x) })
	go x.run()
	go x.join()
	return sync.OnceFunc(func() {
		close(x.over)
		x.leave()
		l.set(func() { l.subs = slices.DeleteFunc(l.subs, func(y *listener) bool { return y == x }) })
	})
}

// send is called by a server that is locked. A queue that is full is a connection
// that the server closes: what is in it is lost.
func (x *listener) send(n driver.Notice) {
	select {
	case x.queue <- n:
	default:
	}
}

func (x *listener) ended() bool {
	select {
	case <-x.over:
		return true
	default:
		return false
	}
}

// run delivers what is sent, one after the other.
func (x *listener) run() {
	for {
		select {
		case <-x.over:
			return
		case n := <-x.queue:
			x.deliver(n)
		}
	}
}

func (x *listener) deliver(n driver.Notice) {
	x.l.travel()
	times := 1
	if s := x.l.ready(); !n.Subscribed && x.l.chance.oneIn(s.air.deaf) {
		times = x.l.chance.n(3)
		if times == 1 {
			time.Sleep(x.l.chance.upTo(3 * time.Second))
		}
	}
	if s := x.l.ready(); s.dead || s.deaf && !n.Subscribed {
		return
	}
	for range times {
		if x.ended() {
			return
		}
		x.hear(n)
	}
}

// join subscribes at the link's server, as soon as it can.
func (x *listener) join() {
	for {
		x.l.travel()
		s := x.l.ready()
		if x.ended() || s.dead {
			return
		}
		if up, _, pause := s.at.reachable(); s.toDeaf || s.deaf || !up || pause > 0 {
			time.Sleep(50 * time.Millisecond)
			continue
		}
		x.l.mu.Lock()
		if x.at != nil {
			x.l.mu.Unlock()
			return
		}
		if x.l.at != s.at || x.ended() {
			x.l.mu.Unlock()
			continue
		}
		x.at = s.at
		s.at.set(func() {
			s.at.subs[x.channel] = append(s.at.subs[x.channel], x)
			x.send(driver.Notice{Subscribed: true})
		})
		x.l.mu.Unlock()
		if x.ended() {
			x.leave()
		}
		return
	}
}

func (x *listener) leave() {
	x.l.mu.Lock()
	defer x.l.mu.Unlock()
	at := x.at
	if x.at = nil; at == nil {
		return
	}
	at.set(func() {
		at.subs[x.channel] = slices.DeleteFunc(at.subs[x.channel], func(y *listener) bool { return y == x })
		if len(at.subs[x.channel]) == 0 {
			delete(at.subs, x.channel)
		}
	})
}
