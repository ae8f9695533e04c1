package request

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/queue"
	"github.com/redlatch/redlatch/internal/renew"
	"github.com/redlatch/redlatch/internal/script"
	"github.com/redlatch/redlatch/internal/wire"
)

// A Session is how requests are sent that count. They have no owner to be
// recognised by. They are numbered instead: a session is the way on which the
// requests of this client about one object go, one at a time, and a key in Redis
// remembers the number and the answer of the last one. A request that is sent
// again gets the answer of the first time, and one that comes late changes
// nothing. (See session.luainc.)
//
// A request whose outcome is unknown is sent again and again, whoever has left,
// and no other is sent before: there is always one at most of which nobody knows
// whether it was executed. Only its first attempt may begin a session. So it can
// be sent for as long as it takes: where Redis has forgotten the session it is
// not executed, but answered that it was forgotten.
type Session struct {
	queue.Users // as long as a request is in flight it is used

	server *Server
	key    string

	Refusals Refusals // of its requests

	mu      sync.Mutex // guards what follows, and the requests in the queue
	stood   time.Time  // when the server has last answered with what it remembers
	queue   []*Count   // those that are not in flight yet
	working bool
}

// A Count is a request of a session: of one caller, or of several if it adds up.
type Count struct {
	Script *script.Script
	Keys   []string
	Args   []string
	Adds   bool // callers that stand behind one another go as one: its last argument is how many they are
	Acks   bool // replicas are to acknowledge it
	// Fleeting says that it leaves no key, unless it is sent again. So a request
	// before it of which it was never learnt what became may still be executed after
	// it.
	Fleeting bool
	Refusals *Refusals // of callers that wait for it elsewhere; may be nil

	// Guarded by Session.mu.
	callers int
	away    bool // it is in flight

	done   chan struct{} // closed when what follows is set
	answer int64
	err    error
}

// sessionTTL is for how long Redis remembers the last request of a session. An
// outage that is not longer leaves no doubt what was executed.
const sessionTTL = 10 * time.Minute

var sessionMs = wire.Millis(sessionTTL)

// Sessions are a client's sessions that are being used, by their keys.
type Sessions struct {
	server *Server
	all    queue.Registry[string, *Session]
}

// Session returns a session for one who sends all its requests alone, with Call
// and Deliver.
func (s *Server) Session(key string) *Session { return &Session{server: s, key: key} }

// Do sends a request in the session with that key, see [Session.Do].
func (sessions *Sessions) Do(ctx context.Context, key string, x Count) (int64, error) {
	session := sessions.all.Get(key, func() *Session { return sessions.server.Session(key) })
	defer session.put()
	return session.Do(ctx, x)
}

func (session *Session) put() { session.server.Sessions.all.Put(session.key, session, nil) }

// Do sends a request and returns its answer, unless ctx has ended before. When it
// returns early, because ctx has ended, the client was closed or the server gave
// no answer for Config.OutageTimeout, a request that is in flight is brought to
// its end nevertheless: it may still be executed, but never twice, and never after
// a later one. One that waits for its turn is not sent.
//
// The script's keys are the given ones and the session's; its arguments are the
// number, the session's TTL and the given ones.
func (session *Session) Do(ctx context.Context, x Count) (int64, error) {
	if ctx.Err() != nil {
		return 0, ContextError(ctx)
	}
	w := Waiting{Key: x.Keys[0], Asks: &session.Refusals, Since: time.Now(), Stop: session.server.Quit}
	count := session.join(x)
	if _, err := Wait(ctx, session.server, &w, count.done); err != nil {
		session.part(count)
		select {
		case <-count.done: // both: the outcome says more
		default:
			return 0, err
		}
	}
	return count.answer, count.err
}

// join lines up a request, or joins one that adds up and is the last in line.
func (session *Session) join(x Count) *Count {
	session.mu.Lock()
	defer session.mu.Unlock()
	if last := len(session.queue) - 1; x.Adds && last >= 0 && session.queue[last].Script == x.Script && session.queue[last].Keys[0] == x.Keys[0] {
		session.queue[last].callers++
		return session.queue[last]
	}
	count := &x
	count.callers, count.done = 1, make(chan struct{})
	session.queue = append(session.queue, count)
	if !session.working {
		session.working = true
		session.server.Sessions.all.Retain(session)
		session.server.Go(session.work)
	}
	return count
}

// part takes a caller's share out of a request that is not in flight.
func (session *Session) part(count *Count) {
	session.mu.Lock()
	defer session.mu.Unlock()
	if count.callers--; count.callers == 0 && !count.away {
		session.queue = slices.DeleteFunc(session.queue, func(x *Count) bool { return x == count })
	}
}

// work sends the requests that are in line, one after the other.
func (session *Session) work() {
	defer session.put()
	for count := session.next(); count != nil; count = session.next() {
		session.send(count)
	}
}

// next takes the next request out of line; with none, or after Close, the worker
// is no longer working.
func (session *Session) next() *Count {
	closed := session.server.Left()
	session.mu.Lock()
	defer session.mu.Unlock()
	if closed || len(session.queue) == 0 {
		session.working = false
		return nil
	}
	count := session.queue[0]
	session.queue = session.queue[1:]
	count.away = true
	if count.Adds {
		count.Args = append(slices.Clip(count.Args), strconv.Itoa(count.callers))
	}
	return count
}

// send brings a request to its end. Its callers are told that, or before that the
// server does not answer.
func (session *Session) send(count *Count) {
	call := session.Call(count.Script, count.Keys, count.Args)
	call.Acks = count.Acks && session.server.Acks.Holds
	if count.Refusals != nil {
		call.Refusals = AllRefusals([]*Refusals{call.Refusals, count.Refusals})
	}
	told := false
	session.Deliver(&call, count.Fleeting, func(answer int64, err error) {
		if !told {
			told, count.answer, count.err = true, answer, err
			close(count.done)
		}
	})
	call.Unacked()
}

// ErrSessionBusy ends the wait of a caller whose turn does not come.
var ErrSessionBusy error = &OutageError{Cause: errors.New("a request before this one is not answered")}

// Call prepares the next request of the session, which nobody else uses until
// then.
func (session *Session) Call(script *script.Script, keys, args []string) Call {
	return Call{
		Server: session.server, Script: script, Stop: session.server.Over, Lease: session.server.Length,
		Keys: append(slices.Clip(keys), session.key), Args: append([]string{session.number(), sessionMs}, args...), Refusals: &session.Refusals,
	}
}

// number returns the number of the next request.
func (session *Session) number() string { return strconv.FormatUint(session.server.numbers.Add(1), 10) }

// Deliver sends a request until it is known what became of it, or will never be,
// and tells that. Before, it tells ErrUnavailable once if the server gives no
// answer for Config.OutageTimeout, or lets this client do nothing any longer: an
// attempt from before that may have been executed.
func (session *Session) Deliver(call *Call, fleeting bool, tell func(answer int64, err error)) {
	retried, unknown, warned := call.Retried, false, false
	number, start := call.Args[0], time.Now()
	call.Retried = func() {
		if call.Unknown {
			// The arguments of before may be in flight.
			call.Args = append([]string{"-" + number}, call.Args[1:]...)
		}
		if retried != nil {
			retried()
		}
	}
	for {
		reply, err := call.Run(context.Background())
		unknown = unknown || call.Unknown
		var answer int64
		if err == nil {
			stood := session.heard(fleeting)
			answer, err = session.answer(call.Script, number, reply)
			if errors.Is(err, ErrForgotten) && !stood && renew.Elapsed(start, time.Now()) < sessionTTL {
				// Had it been executed, Redis would remember it: it was not, and now it
				// never will be.
				number, start = session.number(), time.Now()
				call.Args = append([]string{number}, call.Args[1:]...)
				call.Unknown, unknown = false, false
				continue
			}
			tell(answer, err)
			return
		}
		re := driver.Failure(err)
		shut := shutOut(re)
		if !errors.Is(err, ErrUnavailable) && !shut || !unknown || session.server.Left() {
			tell(0, err)
			return
		}
		if shut {
			call.Failed, err = re, &OutageError{Cause: re}
		}
		if !warned {
			warned = true
			tell(0, err)
		}
		call.Again(err)
		call.Retried()
	}
}

// Again says whether to send a request again that has to be brought to its end and
// has failed with err: not if the server has refused it. It waits where the server
// lets this client do nothing, for then Run has not.
func (call *Call) Again(err error) bool {
	if shutOut(driver.Failure(err)) {
		_, _ = Pause(context.Background(), call.Server.Quit, nil, time.Time{}, Jittered(LongestPause))
		return true
	}
	return errors.Is(err, ErrUnavailable)
}

// shutOut says that the server has executed nothing, and will not before somebody
// acts: the credentials were changed, or the user's rights.
func shutOut(re *driver.RunError) bool {
	return re.Permanent() && (re.Outcome == driver.NotExecuted || re.Code == "NOPERM")
}

// heard notes an answer, and says whether the session was known to stand: Redis
// had answered before with what it remembers, and not forgotten it since by
// itself.
func (session *Session) heard(fleeting bool) (stood bool) {
	session.mu.Lock()
	defer session.mu.Unlock()
	now := time.Now()
	stood = !session.stood.IsZero() && renew.Elapsed(session.stood, now) < sessionTTL
	if !fleeting {
		session.stood = now
	}
	return stood
}

// ErrForgotten says that it will never be known whether a request was executed. It
// will not be from here on.
var ErrForgotten error = &OutageError{Cause: errors.New("the server has forgotten whether it has executed the request: it has lost data, or was away for longer than it remembers requests (10 minutes)")}

// answer reads what a script of a session returns.
func (session *Session) answer(script *script.Script, number string, reply driver.Reply) (int64, error) {
	if len(reply.List) != 2 || reply.List[0].Kind != driver.ReplyInt || (reply.List[1].Kind != driver.ReplyInt && reply.List[1].Kind != driver.ReplyNil) {
		return 0, Unexpected(reply, script)
	}
	if last := strconv.FormatInt(reply.List[0].Int, 10); last != number {
		return 0, fmt.Errorf("redlatch: %s was sent as number %s of its session, and the server has seen %s", script.Name(), number, last)
	}
	if reply.List[1].Kind == driver.ReplyNil {
		return 0, ErrForgotten
	}
	return reply.List[1].Int, nil
}
