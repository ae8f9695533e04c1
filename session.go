package redlatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Requests that count have no owner to be recognised by. They are numbered
// instead: a session is the way on which the requests of this client about one
// object go, one at a time, and a key in Redis remembers the number and the
// answer of the last one. A request that is sent again gets the answer of the
// first time, and one that comes late changes nothing. (See session.luainc.)
//
// A request whose outcome is unknown is sent again and again, whoever has left,
// and no other is sent before: there is always one at most of which nobody knows
// whether it was executed.
type session struct {
	c    *Client
	key  string
	slot chan struct{}

	// Guarded by sessions.mu.
	refs     int       // of those who use it; as long as a request is under way it is used
	answered time.Time // when the server has last answered
}

const (
	// sessionTTL is for how long Redis remembers the last request of a session:
	// far longer than any request can be under way.
	sessionTTL = 10 * time.Minute
	// sessionTries is for how long a request is sent again: while Redis is sure
	// to remember it, should it have been executed.
	sessionTries = sessionTTL / 4
)

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
		s = &session{c: ss.c, key: key, slot: make(chan struct{}, 1)}
		if ss.m == nil {
			ss.m = map[string]*session{}
		}
		ss.m[key] = s
	}
	s.refs++
	return s, s.put
}

func (s *session) hold() {
	s.c.sessions.mu.Lock()
	defer s.c.sessions.mu.Unlock()
	s.refs++
}

func (s *session) put() {
	s.c.sessions.mu.Lock()
	defer s.c.sessions.mu.Unlock()
	if s.refs--; s.refs == 0 {
		delete(s.c.sessions.m, s.key)
	}
}

// heard notes an answer, lastHeard returns when the last one came.
func (s *session) heard() {
	s.c.sessions.mu.Lock()
	defer s.c.sessions.mu.Unlock()
	s.answered = time.Now()
}

func (s *session) lastHeard() time.Time {
	s.c.sessions.mu.Lock()
	defer s.c.sessions.mu.Unlock()
	return s.answered
}

// enter waits until no other request of the session is under way, for as long as
// those before it are answered. Who is inside uses the session until leave.
func (s *session) enter(ctx context.Context, until time.Time) (err error) {
	s.hold()
	defer func() {
		if err != nil {
			s.put()
		}
	}()
	select {
	case s.slot <- struct{}{}:
		return nil
	default:
	}
	t := time.NewTimer(0)
	defer t.Stop()
	for silent := time.Now(); ; {
		if heard := s.lastHeard(); heard.After(silent) {
			silent = heard
		}
		limit, over := silent.Add(s.c.cfg.OutageTimeout), errSessionBusy
		if !until.IsZero() && until.Before(limit) {
			limit, over = until, errWaitOver
		}
		t.Reset(time.Until(limit))
		select {
		case s.slot <- struct{}{}:
			return nil
		case <-ctx.Done():
			return ctxError(ctx)
		case <-s.c.done:
			return ErrClosed
		case <-t.C:
		}
		if over != errSessionBusy || !s.lastHeard().After(silent) { //nolint:errorlint // chosen right here
			return over
		}
	}
}

var errSessionBusy error = &outageError{cause: errors.New("a request before this one is not answered")}

func (s *session) leave() {
	<-s.slot
	s.put()
}

// do sends a request and returns its answer. When it returns early, because ctx
// has ended, the client was closed or the server gave no answer for
// Config.OutageTimeout, the request is brought to its end nevertheless: it may
// still be executed, but never twice, and never after a later one.
//
// The script's keys are the given ones and the session's; its arguments are the
// number, the session's TTL and the given ones.
func (s *session) do(ctx context.Context, script *Script, keys, args []string) (int64, error) {
	if err := s.enter(ctx, time.Time{}); err != nil {
		return 0, err
	}
	o := s.op(script, keys, args)
	type result struct {
		answer int64
		err    error
	}
	results := make(chan result, 2) // as often as deliver tells
	s.c.settle(func() {
		defer s.leave()
		s.deliver(&o, func(answer int64, err error) { results <- result{answer, err} })
	})
	left := ErrClosed
	select {
	case r := <-results:
		return r.answer, r.err
	case <-ctx.Done():
		left = ctxError(ctx)
	case <-s.c.done:
	}
	select {
	case r := <-results: // both: the outcome says more
		return r.answer, r.err
	default:
		return 0, left
	}
}

// op prepares the next request of the session. Its caller is inside.
func (s *session) op(script *Script, keys, args []string) op {
	number := strconv.FormatUint(s.c.seq.Add(1), 10)
	return op{
		c: s.c, script: script, stop: s.c.over, lease: s.c.cfg.WatchdogTimeout,
		keys: append(slices.Clip(keys), s.key), args: append([]string{number, sessionMs}, args...),
	}
}

// deliver sends a request until it is known what became of it, or Redis may have
// forgotten it, and tells that. Before, it tells ErrUnavailable once if the
// server gives no answer for Config.OutageTimeout.
func (s *session) deliver(o *op, tell func(answer int64, err error)) {
	number := o.args[0]
	start := time.Now()
	if s.c.cfg.OutageTimeout > sessionTries {
		o.until = start.Add(sessionTries)
	}
	unknown, warned := false, false
	for {
		reply, err := o.run(context.Background())
		unknown = unknown || o.unknown
		switch {
		case err == nil:
			s.heard()
			tell(s.answer(o.script, number, reply))
			return
		case !errors.Is(err, ErrUnavailable) || !unknown || s.c.open() != nil || time.Since(start) >= sessionTries:
			tell(0, err)
			return
		case !warned:
			warned = true
			tell(0, err)
		}
	}
}

// answer reads what a script of a session returns.
func (s *session) answer(script *Script, number string, reply Reply) (int64, error) {
	if len(reply.List) != 2 || reply.List[0].Kind != ReplyInt || reply.List[1].Kind != ReplyInt {
		return 0, unexpected(reply, script)
	}
	if last := strconv.FormatInt(reply.List[0].Int, 10); last != number {
		return 0, fmt.Errorf("redlatch: %s was sent as number %s of its session, and the server has seen %s", script.Name(), number, last)
	}
	return reply.List[1].Int, nil
}
