package redlatch

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// A sender takes the requests of one lane to the driver. While many are under
// way it lets those that come together go out together, where the driver can do
// that: system calls are most of what a request costs a client.
//
// It also tells callers that no answer has come in time, or that the client is
// closing, so that a request needs no timer of its own.
type sender struct {
	c     *Client
	lane  string
	batch Batcher // nil: each request goes by itself

	mu    sync.Mutex // guards what follows
	open  *batch     // the one that more requests may join, if any
	away  []*batch   // those under way, and the open one
	count int        // how many requests that is
	alarm *time.Timer
	due   time.Time // when the alarm rings; zero: never
}

// A batch is the requests that go out together.
type batch struct {
	s        *sender
	at       int  // its index in sender.away
	gathers  bool // waits for others before it goes out
	attempts []*attempt
	requests []*Request
}

const (
	// fewRequests each go by themselves. With more of them the next one is
	// likely to be about to come.
	fewRequests = 3
	// fullBatch does not wait for more: a larger one would leave the server
	// idle while it gathers.
	fullBatch = 16
	// alarmPause is between two rings of the alarm.
	alarmPause = 5 * time.Millisecond
)

// An attempt is a request that is sent once.
type attempt struct {
	request Request
	ctx     context.Context //nolint:containedctx // travels with the request it belongs to
	stop    <-chan struct{} // closed: the caller is to be told
	done    chan struct{}   // told when the attempt has ended, and before that if it ended early
	acks    time.Duration   // how long to wait for replicas; 0: not at all
	short   *AckError       // too few have acknowledged it in time
	timer   *time.Timer     // for a caller with a limit of his own; stopped else

	// Guarded by sender.mu until done has been told.
	limit time.Time // when no answer has come in time; zero: never
	early early
}

// early is how an attempt ended for its caller, before it really did.
type early uint8

const (
	notEarly early = iota
	noAnswer       // limit has passed
	stopped        // stop was closed
	left           // the caller needs no telling
)

// join adds a to the open batch, or begins one, which the caller is to run.
func (s *sender) join(a *attempt) *batch {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-a.stop:
		a.end(stopped) // and sent all the same: it may be a release
	default:
	}
	if !a.limit.IsZero() && (s.due.IsZero() || a.limit.Before(s.due)) {
		s.ringLocked(a.limit)
	}
	s.count++
	if b := s.open; b != nil && a.acks == 0 {
		b.attempts = append(b.attempts, a)
		if len(b.attempts) == fullBatch {
			s.open = nil
		}
		return nil
	}
	b := s.c.newBatch(s)
	b.at = len(s.away)
	s.away = append(s.away, b)
	b.attempts = append(b.attempts, a)
	if b.gathers = s.batch != nil && s.count > fewRequests && a.acks == 0; b.gathers {
		s.open = b
	}
	return b
}

// send has a worker send a. It returns at once.
func (s *sender) send(a *attempt) {
	if b := s.join(a); b != nil {
		s.c.pool.Go(b)
	}
}

// wait sends a right here, unless another caller does, and returns when it has
// ended.
func (s *sender) wait(a *attempt) {
	a.early = left
	if b := s.join(a); b != nil {
		b.Run()
	}
	<-a.done
}

// gather lets everybody who can run go first, then closes the batch. That takes
// no longer: an idle process sends at once.
func (b *batch) gather() {
	runtime.Gosched()
	s := b.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == b {
		s.open = nil
	}
}

// Run implements worker.Job.
func (b *batch) Run() {
	if b.gathers {
		b.gather()
	}
	s := b.s
	if len(b.attempts) == 1 {
		a := b.attempts[0]
		if r := &a.request; a.acks > 0 {
			a.short = s.c.acks.run(a.ctx, r, a.acks)
		} else {
			r.Reply, r.Err = s.c.redis.Run(a.ctx, r.Script, r.Keys, r.Args)
		}
	} else {
		for _, a := range b.attempts {
			b.requests = append(b.requests, &a.request)
		}
		s.batch.RunBatch(b.requests)
	}
	if b.answered() {
		s.c.clock.Answered(s.lane)
	}
	s.mu.Lock()
	s.count -= len(b.attempts)
	last := len(s.away) - 1
	s.away[b.at] = s.away[last]
	s.away[b.at].at = b.at
	s.away[last] = nil
	s.away = s.away[:last]
	s.mu.Unlock()
	for _, a := range b.attempts {
		a.done <- struct{}{}
	}
	s.c.freeBatch(b)
}

// answered says that one of the requests was.
func (b *batch) answered() bool {
	for _, a := range b.attempts {
		if a.request.Err == nil || runError(a.request.Err).Outcome == Refused {
			return true
		}
	}
	return false
}

// end tells the caller of an end before the real one. Holding sender.mu.
func (a *attempt) end(why early) {
	if a.early == notEarly {
		a.early = why
		a.done <- struct{}{} // there is room: the real end is not told yet
	}
}

// leave notes that the caller of a goes without having been told of its end.
// After that done is told once more.
func (s *sender) leave(a *attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.early != notEarly {
		<-a.done // of which he did not learn
	}
	a.early = left
}

// ringLocked sets the alarm.
func (s *sender) ringLocked(due time.Time) {
	s.due = due
	if s.alarm == nil {
		s.alarm = time.AfterFunc(time.Until(due), s.tell)
		return
	}
	s.alarm.Reset(time.Until(due))
}

// tell tells all callers whose time is over, or who are to stop.
func (s *sender) tell() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	var next time.Time
	for _, b := range s.away {
		for _, a := range b.attempts {
			select {
			case <-a.stop:
				a.end(stopped)
			default:
			}
			switch {
			case a.early != notEarly || a.limit.IsZero():
			case !a.limit.After(now):
				a.end(noAnswer)
			case next.IsZero() || a.limit.Before(next):
				next = a.limit
			}
		}
	}
	if s.due = next; next.IsZero() {
		return
	}
	if soon := now.Add(alarmPause); next.Before(soon) {
		next = soon
	}
	s.ringLocked(next)
}

// senders are a client's: one, or in a cluster one for each lane.
type senders struct {
	c    *Client
	only *sender

	mu    sync.Mutex // guards lanes
	lanes map[string]*sender
}

func newSenders(c *Client) *senders {
	ss := &senders{c: c}
	if c.traits.Cluster {
		ss.lanes = make(map[string]*sender)
	}
	ss.only = ss.make("")
	return ss
}

func (ss *senders) make(lane string) *sender {
	s := &sender{c: ss.c, lane: lane}
	if !ss.c.traits.ContextValues { // a batch has no one context
		s.batch, _ = ss.c.redis.(Batcher)
	}
	return s
}

// of returns the sender for a request with these keys.
func (ss *senders) of(keys []string) *sender {
	if ss.lanes == nil || len(keys) == 0 {
		return ss.only
	}
	lane := ss.c.redis.Lane(keys[0])
	ss.mu.Lock()
	defer ss.mu.Unlock()
	s := ss.lanes[lane]
	if s == nil {
		s = ss.make(lane)
		ss.lanes[lane] = s
	}
	return s
}

// tell tells all callers who are to stop.
func (ss *senders) tell() {
	ss.mu.Lock()
	all := []*sender{ss.only}
	for _, s := range ss.lanes {
		all = append(all, s)
	}
	ss.mu.Unlock()
	for _, s := range all {
		s.tell()
	}
}

func (c *Client) newAttempt(ctx context.Context, o *op) *attempt {
	a, ok := c.attempts.Get().(*attempt)
	if !ok {
		t := time.NewTimer(time.Hour)
		t.Stop()
		a = &attempt{timer: t, done: make(chan struct{}, 2)}
	}
	a.request = Request{Script: o.script, Keys: o.keys, Args: o.args}
	a.ctx, a.stop = context.Background(), o.stop
	if o.acks && !c.acks.pointless(o.keys[0]) {
		a.acks = c.acks.timeout(ctx, o)
	}
	if c.traits.ContextValues {
		a.ctx = context.WithoutCancel(ctx)
	}
	return a
}

// answer returns how a has ended, and frees it.
func (c *Client) answer(a *attempt) (Reply, error) {
	reply, err := a.request.Reply, a.request.Err
	a.request, a.ctx, a.stop, a.limit, a.early = Request{}, nil, nil, time.Time{}, notEarly
	a.acks, a.short = 0, nil
	c.attempts.Put(a)
	return reply, err
}

func (c *Client) newBatch(s *sender) *batch {
	b, ok := c.batches.Get().(*batch)
	if !ok {
		b = &batch{}
	}
	b.s = s
	return b
}

func (c *Client) freeBatch(b *batch) {
	clear(b.attempts)
	clear(b.requests)
	b.s, b.attempts, b.requests = nil, b.attempts[:0], b.requests[:0]
	c.batches.Put(b)
}
