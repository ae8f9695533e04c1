package redlatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/renew"
)

// Requests that count have no owner to be recognised by. They are numbered
// instead: a session is the way on which the requests of this client about one
// object go, one at a time, and a key in Redis remembers the number and the
// answer of the last one. A request that is sent again gets the answer of the
// first time, and one that comes late changes nothing. (See session.luainc.)
//
// A request whose outcome is unknown is sent again and again, whoever has left,
// and no other is sent before: there is always one at most of which nobody knows
// whether it was executed. Only its first attempt may begin a session. So it can
// be sent for as long as it takes: where Redis has forgotten the session it is
// not executed, but answered that it was forgotten.
type session struct {
	c   *Client
	key string

	// Guarded by sessions.mu.
	refs     int       // of those who use it; as long as a request is under way it is used
	answered time.Time // when the server has last answered
	queue    []*count  // those that are not under way yet
	working  bool
}

// A count is a request of a session: of one caller, or of several if it adds up.
type count struct {
	script *Script
	keys   []string
	args   []string
	adds   bool // callers that stand behind one another go as one: its last argument is how many they are
	acks   bool // replicas are to acknowledge it

	// Guarded by sessions.mu.
	callers int
	away    bool // it is under way

	done   chan struct{} // closed when what follows is set
	answer int64
	err    error
}

// sessionTTL is for how long Redis remembers the last request of a session. An
// outage that is not longer leaves no doubt what was executed.
const sessionTTL = 10 * time.Minute

var sessionMs = millis(sessionTTL)

// sessions are a client's sessions that are being used, by their keys.
type sessions struct {
	c  *Client
	mu sync.Mutex // guards m, and of each session what it says
	m  map[string]*session
}

// get returns the session with that key, and how to give it back.
func (ss *sessions) get(key string) (s *session, put func()) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	s = ss.m[key]
	if s == nil {
		s = &session{c: ss.c, key: key}
		if ss.m == nil {
			ss.m = map[string]*session{}
		}
		ss.m[key] = s
	}
	s.refs++
	return s, s.put
}

func (s *session) put() {
	s.c.sessions.mu.Lock()
	defer s.c.sessions.mu.Unlock()
	if s.refs--; s.refs == 0 {
		delete(s.c.sessions.m, s.key)
	}
}

// do sends a request and returns its answer. When it returns early, because ctx
// has ended, the client was closed or the server gave no answer for
// Config.OutageTimeout, a request that is under way is brought to its end
// nevertheless: it may still be executed, but never twice, and never after a later
// one. One that waits for its turn is not sent.
//
// The script's keys are the given ones and the session's; its arguments are the
// number, the session's TTL and the given ones.
func (s *session) do(ctx context.Context, x count) (int64, error) {
	q := s.join(x)
	start := time.Now()
	t := time.NewTimer(s.c.cfg.OutageTimeout)
	defer t.Stop()
	for {
		var err error
		select {
		case <-q.done:
			return q.answer, q.err
		case <-ctx.Done():
			err = ctxError(ctx)
		case <-s.c.done:
			err = ErrClosed
		case <-t.C:
			if left := s.patience(q, start); left > 0 {
				t.Reset(left)
				continue
			}
			err = errSessionBusy
		}
		s.part(q)
		select {
		case <-q.done: // both: the outcome says more
			return q.answer, q.err
		default:
			return 0, err
		}
	}
}

// join lines up a request, or joins one that adds up and is the last in line.
func (s *session) join(x count) *count {
	s.c.sessions.mu.Lock()
	defer s.c.sessions.mu.Unlock()
	if last := len(s.queue) - 1; x.adds && last >= 0 && s.queue[last].script == x.script && s.queue[last].keys[0] == x.keys[0] {
		s.queue[last].callers++
		return s.queue[last]
	}
	q := &x
	q.callers, q.done = 1, make(chan struct{})
	s.queue = append(s.queue, q)
	if !s.working {
		s.working = true
		s.refs++
		s.c.settle(s.work)
	}
	return q
}

// part takes a caller's share out of a request that is not under way.
func (s *session) part(q *count) {
	s.c.sessions.mu.Lock()
	defer s.c.sessions.mu.Unlock()
	if q.callers--; q.callers == 0 && !q.away {
		s.queue = slices.DeleteFunc(s.queue, func(x *count) bool { return x == q })
	}
}

// patience returns for how long a caller goes on waiting for its turn: as long as
// the requests before it are answered. Who is told by deliver need not ask.
func (s *session) patience(q *count, start time.Time) time.Duration {
	s.c.sessions.mu.Lock()
	defer s.c.sessions.mu.Unlock()
	if q.away {
		return s.c.cfg.OutageTimeout
	}
	if s.answered.After(start) {
		start = s.answered
	}
	return time.Until(start.Add(s.c.cfg.OutageTimeout))
}

// work sends the requests that are in line, one after the other.
func (s *session) work() {
	defer s.put()
	for q := s.next(); q != nil; q = s.next() {
		s.send(q)
	}
}

// next takes the next request out of line; with none, or after Close, the worker
// is no longer working.
func (s *session) next() *count {
	closed := s.c.open() != nil
	s.c.sessions.mu.Lock()
	defer s.c.sessions.mu.Unlock()
	if closed || len(s.queue) == 0 {
		s.working = false
		return nil
	}
	q := s.queue[0]
	s.queue = s.queue[1:]
	q.away = true
	if q.adds {
		q.args = append(slices.Clip(q.args), strconv.Itoa(q.callers))
	}
	return q
}

// send brings a request to its end. Its callers are told that, or before that the
// server does not answer.
func (s *session) send(q *count) {
	o := s.op(q.script, q.keys, q.args)
	o.acks = q.acks && s.c.acks.holds
	told := false
	s.deliver(&o, func(answer int64, err error) {
		if !told {
			told, q.answer, q.err = true, answer, err
			close(q.done)
		}
	})
	o.unacked()
}

var errSessionBusy error = &outageError{cause: errors.New("a request before this one is not answered")}

// op prepares the next request of the session, which nobody else uses until then.
func (s *session) op(script *Script, keys, args []string) op {
	return op{
		c: s.c, script: script, stop: s.c.over, lease: s.c.cfg.WatchdogTimeout,
		keys: append(slices.Clip(keys), s.key), args: append([]string{s.number(), sessionMs}, args...),
	}
}

// number returns the number of the next request.
func (s *session) number() string { return strconv.FormatUint(s.c.seq.Add(1), 10) }

// deliver sends a request until it is known what became of it, or will never be,
// and tells that. Before, it tells ErrUnavailable once if the server gives no
// answer for Config.OutageTimeout.
func (s *session) deliver(o *op, tell func(answer int64, err error)) {
	retried, unknown, warned := o.retried, false, false
	number, start := o.args[0], time.Now()
	o.retried = func() {
		if o.unknown {
			// The arguments of before may be under way.
			o.args = append([]string{"-" + number}, o.args[1:]...)
		}
		if retried != nil {
			retried()
		}
	}
	for {
		reply, err := o.run(context.Background())
		unknown = unknown || o.unknown
		var answer int64
		if err == nil {
			stood := s.heard()
			answer, err = s.answer(o.script, number, reply)
			if errors.Is(err, errForgotten) && !stood && renew.Elapsed(start, time.Now()) < sessionTTL {
				// Had it been executed, Redis would remember it: it was not, and now it
				// never will be.
				number, start = s.number(), time.Now()
				o.args = append([]string{number}, o.args[1:]...)
				o.unknown, unknown = false, false
				continue
			}
			tell(answer, err)
			return
		}
		if !errors.Is(err, ErrUnavailable) || !unknown || s.c.open() != nil {
			tell(0, err)
			return
		}
		if !warned {
			warned = true
			tell(0, err)
		}
		o.retried()
	}
}

// heard notes an answer, and says whether the session was known to stand: Redis
// had answered before, and not forgotten it since by itself.
func (s *session) heard() (stood bool) {
	s.c.sessions.mu.Lock()
	defer s.c.sessions.mu.Unlock()
	now := time.Now()
	stood = !s.answered.IsZero() && renew.Elapsed(s.answered, now) < sessionTTL
	s.answered = now
	return stood
}

// errForgotten says that it will never be known whether a request was executed. It
// will not be from here on.
var errForgotten error = &outageError{cause: errors.New("the server has forgotten whether it has executed the request: it has lost data, or was away for longer than it remembers requests (10 minutes)")}

// answer reads what a script of a session returns.
func (s *session) answer(script *Script, number string, reply Reply) (int64, error) {
	if len(reply.List) != 2 || reply.List[0].Kind != ReplyInt || (reply.List[1].Kind != ReplyInt && reply.List[1].Kind != ReplyNil) {
		return 0, unexpected(reply, script)
	}
	if last := strconv.FormatInt(reply.List[0].Int, 10); last != number {
		return 0, fmt.Errorf("redlatch: %s was sent as number %s of its session, and the server has seen %s", script.Name(), number, last)
	}
	if reply.List[1].Kind == ReplyNil {
		return 0, errForgotten
	}
	return reply.List[1].Int, nil
}
