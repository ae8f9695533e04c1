package request

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/redlatch/redlatch/driver"
)

// A sender takes the requests of one node to the driver. While many are in
// flight it lets those that come together go out together, where the driver can do
// that: system calls are most of what a request costs a client.
//
// It also tells callers that no answer has come in time, or that the client is
// closing, so that a request needs no timer of its own.
type sender struct {
	server *Server
	node   string
	batch  driver.Batcher // nil: each request goes by itself

	mu    sync.Mutex // guards what follows
	open  *batch     // the one that more requests may join, if any
	away  away       // those in flight, and the open one
	count int        // how many requests that is
	load  int        // smooth times as many, averaged over the latest requests
	quiet bool       // the last request that ended was not answered
	asked time.Time  // when the first request was sent since the last answer; zero: none was
	ended time.Time  // when a request last ended without one,
	why   error      // and what with; nil: there was an answer since
	alarm *time.Timer
	due   time.Time // when the alarm rings; zero: never
}

// A batch is the requests that go out together.
type batch struct {
	s          *sender
	prev, next *batch // in sender.away
	sent       time.Time
	gathers    bool       // waits for others before it goes out
	attempts   []*attempt // none: a caller sends it itself
	requests   []*driver.Request
}

const (
	// fewRequests of workers each go by themselves. With more of them the next one is
	// likely to be about to come.
	fewRequests = 5
	// directRequests callers each take their request to the driver themselves. With
	// more of them a batch saves more system calls than the change to a worker costs.
	directRequests = 20
	// smooth is over how many requests an average is taken.
	smooth = 16
	// fullBatch does not wait for more: a larger one would leave the server
	// idle while it gathers.
	fullBatch = 16
	// alarmPause is between two rings of the alarm.
	alarmPause = 5 * time.Millisecond
	// slowAfter is how long a request may be in flight, without any answer, before the
	// server is more than slow: callers that leave say so.
	slowAfter = 100 * time.Millisecond
	// quietAfter is for how long nothing is asked until the server is no longer taken
	// to be as silent as it was last. A call that goes on pauses for less.
	quietAfter = 3 * time.Second
)

// An attempt is a request that is sent once.
type attempt struct {
	request driver.Request
	ctx     context.Context //nolint:containedctx // travels with the request it belongs to
	stop    <-chan struct{} // closed: the caller is to be told
	done    chan struct{}   // told when the attempt has ended, and before that if it ended early
	acks    time.Duration   // how long to wait for replicas; 0: not at all
	key     string          // of what it is about, for an error about these
	sent    time.Time
	short   error       // too few have acknowledged it in time
	timer   *time.Timer // for a caller with a limit of its own; stopped else

	// Guarded by sender.mu until done has been told.
	limit time.Time // when no answer has come in time; zero: never
	ended earlyEnd
}

// earlyEnd is how an attempt ended for its caller, before it really did.
type earlyEnd uint8

const (
	notEarly earlyEnd = iota
	noAnswer          // limit has passed
	stopped           // stop was closed
	left              // the caller needs no telling
)

// join adds a to the open batch, or begins one, which the caller is to run.
func (out *sender) join(a *attempt) *batch {
	out.mu.Lock()
	defer out.mu.Unlock()
	if closed(a.stop) {
		a.end(stopped) // and sent all the same: it may be a release
	}
	if !a.limit.IsZero() && (out.due.IsZero() || a.limit.Before(out.due)) {
		out.ringLocked(a.limit)
	}
	under := out.beginLocked(a.sent)
	if b := out.open; b != nil && a.acks == 0 {
		b.attempts = append(b.attempts, a)
		if len(b.attempts) == fullBatch {
			out.open = nil
		}
		return nil
	}
	b := out.server.newBatch(out)
	out.away.add(b, a.sent)
	b.attempts = append(b.attempts, a)
	if b.gathers = out.batch != nil && under >= fewRequests && a.acks == 0; b.gathers {
		out.open = b
	}
	return b
}

// send has a worker send a. It returns at once.
func (out *sender) send(a *attempt) {
	if b := out.join(a); b != nil {
		out.server.Pool.Go(b)
	}
}

// wait sends a right here, unless another caller does, and returns when it has
// ended. Close waits for that.
func (out *sender) wait(a *attempt) {
	out.server.Pool.Enter()
	defer out.server.Pool.Leave()
	a.ended = left
	if b := out.join(a); b != nil {
		b.Run()
	}
	<-a.done
}

// gather lets everybody who can run go first, then closes the batch. That takes
// no longer: an idle process sends at once.
func (b *batch) gather() {
	runtime.Gosched()
	out := b.s
	out.mu.Lock()
	defer out.mu.Unlock()
	if out.open == b {
		out.open = nil
	}
}

// Run implements worker.Job.
func (b *batch) Run() {
	if b.gathers {
		b.gather()
	}
	out := b.s
	if len(b.attempts) == 1 {
		a := b.attempts[0]
		if r := &a.request; a.acks > 0 {
			a.short = out.server.Acks.run(a.ctx, r, a.key, a.acks)
		} else {
			r.Reply, r.Err = out.server.Driver.Run(a.ctx, r.Script, r.Keys, r.Args)
		}
	} else {
		for _, a := range b.attempts {
			b.requests = append(b.requests, &a.request)
		}
		out.batch.RunBatch(b.requests)
	}
	out.exit(b, b.answered(), b.attempts[0].request.Err)
	for _, a := range b.attempts {
		if err := a.request.Err; err != nil {
			out.learnSlots(err)
		}
		a.done <- struct{}{}
	}
	out.server.freeBatch(b)
}

// answered says that one of the requests was.
func (b *batch) answered() bool {
	for _, a := range b.attempts {
		if answered(a.request.Err) {
			return true
		}
	}
	return false
}

func answered(err error) bool { return err == nil || driver.Failure(err).Outcome == driver.Refused }

// enter lets a caller take its request to the driver itself, unless many are in
// flight: those go out together. While the server does not answer, or not promptly
// enough for a caller that may want to leave, workers do it: the driver may be
// waiting for a connection then. enter returns what the caller is to run, or nil.
func (out *sender) enter(ctx context.Context, now time.Time) *batch {
	out.mu.Lock()
	defer out.mu.Unlock()
	if out.quiet || out.batch != nil && out.load/smooth >= directRequests || ctx.Done() != nil && !out.away.prompt(ctx, now) {
		return nil
	}
	out.beginLocked(now)
	b := out.server.newBatch(out)
	out.away.add(b, now)
	return b
}

// run takes a request to the driver for a caller that has entered. Close waits for
// that, as it does for workers.
func (b *batch) run(ctx context.Context, call *Call) (reply driver.Reply, err error) {
	out := b.s
	out.server.Pool.Enter()
	heard := false // nor is it, if a hook of the client library panics
	defer func() {
		failed := err
		if call.dropped(ctx, err) {
			failed = nil
		}
		out.exit(b, heard, failed)
		out.server.freeBatch(b)
		out.server.Pool.Leave()
	}()
	reply, err = out.server.Driver.Run(ctx, call.Script.Script, call.Keys, call.Args)
	if heard = answered(err); err != nil {
		out.learnSlots(err)
	}
	return reply, err
}

// beginLocked notes one more request in flight, that is sent now. It returns how
// many were on average: when a batch has been answered there are none for a
// moment.
func (out *sender) beginLocked(now time.Time) int {
	if out.asked.IsZero() || out.count == 0 && now.Sub(out.ended) > quietAfter {
		out.asked, out.why = now, nil // what failed before it was quiet says nothing of now
	}
	out.load += out.count - out.load/smooth
	out.count++
	return out.load / smooth
}

// exit notes that the driver has returned, and whether with an answer, or why not.
// Without a reason a caller has left, which says nothing of the server unless that
// was silent for long.
func (out *sender) exit(b *batch, heard bool, why error) {
	if heard {
		out.server.Answered(out.node)
	}
	out.mu.Lock()
	defer out.mu.Unlock()
	out.away.remove(b, heard, !heard && why == nil)
	if !heard && why == nil && out.why == nil && !out.asked.IsZero() {
		why = out.late(out.asked)
	}
	switch {
	case heard:
		out.quiet, out.asked, out.why = false, time.Time{}, nil
	case why != nil:
		out.quiet, out.ended, out.why = true, time.Now(), why
	case out.why == nil && out.count == 1:
		out.asked = time.Time{} // it owes nobody an answer
	}
	out.count -= max(len(b.attempts), 1)
}

// missing returns an error for a request that has had no answer for so long, and
// what the driver has last said of an earlier one: it may have waited for a
// connection. It is only told, for it is not what became of this request.
func (out *sender) missing(limit time.Duration) error {
	out.mu.Lock()
	defer out.mu.Unlock()
	if out.why != nil {
		return fmt.Errorf("%w (%v), after: %v", ErrNoAnswer, limit, out.why) //nolint:errorlint // it is only told
	}
	return fmt.Errorf("%w (%v)", ErrNoAnswer, limit)
}

// late returns an error for a request that has been in flight since then, if that
// is too long.
func (out *sender) late(sent time.Time) error {
	long := slowAfter
	if out.server.Acks.Holds {
		long += out.server.AckTimeout
	}
	if d := time.Since(sent); d >= long {
		return fmt.Errorf("%w (%v)", ErrNoAnswer, d.Round(time.Millisecond))
	}
	return nil
}

// end tells the caller of an end before the real one. Holding sender.mu.
func (a *attempt) end(why earlyEnd) {
	if a.ended == notEarly {
		a.ended = why
		a.done <- struct{}{} // there is room: the real end is not told yet
	}
}

// leave notes that the caller of a goes without having been told of its end.
// After that done is told once more.
func (out *sender) leave(a *attempt) {
	out.mu.Lock()
	defer out.mu.Unlock()
	if a.ended != notEarly {
		<-a.done // of which the caller did not learn
	}
	a.ended = left
}

// ringLocked sets the alarm.
func (out *sender) ringLocked(due time.Time) {
	out.due = due
	if out.alarm == nil {
		out.alarm = time.AfterFunc(time.Until(due), out.tell)
		return
	}
	out.alarm.Reset(time.Until(due))
}

// tell tells all callers whose time is over, or who are to stop.
func (out *sender) tell() {
	out.mu.Lock()
	defer out.mu.Unlock()
	now := time.Now()
	var next time.Time
	for b := out.away.first.next; b != &out.away.first; b = b.next {
		for _, a := range b.attempts {
			if closed(a.stop) {
				a.end(stopped)
			}
			switch {
			case a.ended != notEarly || a.limit.IsZero():
			case !a.limit.After(now):
				a.end(noAnswer)
			case next.IsZero() || a.limit.Before(next):
				next = a.limit
			}
		}
	}
	if out.due = next; next.IsZero() {
		return
	}
	if soon := now.Add(alarmPause); next.Before(soon) {
		next = soon
	}
	out.ringLocked(next)
}

// senders are a client's: one, or in a cluster one for each node.
type senders struct {
	server *Server
	only   *sender
	slots  slots

	mu    sync.Mutex // guards nodes
	nodes map[string]*sender
}

func (ss *senders) start(server *Server) {
	ss.server = server
	if server.Traits.Cluster {
		ss.nodes = make(map[string]*sender)
	}
	ss.only = ss.make("")
}

func (ss *senders) make(node string) *sender {
	out := &sender{server: ss.server, node: node}
	out.away.start()
	if !ss.server.Traits.ContextValues { // a batch has no one context
		out.batch, _ = ss.server.Driver.(driver.Batcher)
	}
	return out
}

// of returns the sender for a request with these keys.
func (ss *senders) of(keys []string) *sender {
	if ss.nodes == nil || len(keys) == 0 {
		return ss.only
	}
	return ss.at(keys[0])
}

// at returns the sender for a key.
func (ss *senders) at(key string) *sender {
	if ss.nodes == nil {
		return ss.only
	}
	node := ss.server.Driver.Node(key)
	ss.mu.Lock()
	defer ss.mu.Unlock()
	out := ss.nodes[node]
	if out == nil {
		out = ss.make(node)
		ss.nodes[node] = out
	}
	return out
}

// all returns the senders of a node, or of all nodes.
func (ss *senders) all(node string) []*sender {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	all := []*sender{ss.only}
	for name, out := range ss.nodes {
		if node == "" || node == name {
			all = append(all, out)
		}
	}
	return all
}

// tell tells all callers who are to stop.
func (ss *senders) tell() {
	for _, out := range ss.all("") {
		out.tell()
	}
}

func (s *Server) newAttempt(ctx context.Context, call *Call) *attempt {
	a, ok := s.attempts.Get().(*attempt)
	if !ok {
		t := time.NewTimer(time.Hour)
		t.Stop()
		a = &attempt{timer: t, done: make(chan struct{}, 2)}
	}
	a.request = driver.Request{Script: call.Script.Script, Keys: call.Keys, Args: call.Args}
	a.ctx, a.stop, a.sent = context.Background(), call.Stop, call.Sent
	if call.acked() {
		a.acks, a.key = s.Acks.timeout(ctx, call), cmp.Or(call.Key, call.Keys[0])
	}
	if s.Traits.ContextValues {
		a.ctx = context.WithoutCancel(ctx)
	}
	return a
}

func (s *Server) newBatch(by *sender) *batch {
	b, ok := s.batches.Get().(*batch)
	if !ok {
		b = &batch{}
	}
	b.s = by
	return b
}

func (s *Server) freeBatch(b *batch) {
	clear(b.attempts)
	clear(b.requests)
	b.s, b.gathers, b.attempts, b.requests = nil, false, b.attempts[:0], b.requests[:0]
	s.batches.Put(b)
}
