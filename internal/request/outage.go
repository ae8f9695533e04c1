package request

import (
	"context"
	"sync/atomic"
	"time"
)

// There is one rule for outages. A caller fails when Options.Outage has passed
// since it came and since the server last owed no answer, whichever is later. A
// refusal owes an answer, too: the server has no memory, say. Each caller decides
// that for itself, with Look, and nobody fails for another: whoever asks for
// several callers asks for as long as there are any.

// Refusals are what has become of the requests that callers send for one another,
// of whom one at a time asks. The others learn from it that the server gives no
// answer, or none that helps. Their zero value is none. Nil Refusals note nothing.
type Refusals struct {
	last atomic.Pointer[failure] // nil: there is none
	also []*Refusals             // of others that the same request is for
}

type failure struct {
	err   error
	since time.Time // when the first of the attempts was sent that have failed in a row
}

// AllRefusals returns what notes the same in several.
func AllRefusals(all []*Refusals) *Refusals { return &Refusals{also: all} }

// Note notes that an attempt has failed that was sent then.
func (refusals *Refusals) Note(err error, sent time.Time) {
	if refusals == nil {
		return
	}
	if last := refusals.last.Load(); last != nil {
		sent = last.since
	}
	refusals.last.Store(&failure{err, sent})
	for _, other := range refusals.also {
		other.Note(err, sent)
	}
}

// Over notes that the server has answered.
func (refusals *Refusals) Over() {
	if refusals == nil {
		return
	}
	refusals.last.Store(nil)
	for _, other := range refusals.also {
		other.Over()
	}
}

// Why returns why the last attempt has failed; nil: it has not.
func (refusals *Refusals) Why() error {
	_, err := refusals.failing()
	return err
}

func (refusals *Refusals) failing() (since time.Time, why error) {
	if refusals == nil {
		return since, nil
	}
	if last := refusals.last.Load(); last != nil {
		since, why = last.since, last.err
	}
	for _, other := range refusals.also {
		if before, err := other.failing(); err != nil && (why == nil || before.Before(since)) {
			since, why = before, err
		}
	}
	return since, why
}

// soonest is how long a caller waits at least before it looks again.
const soonest = 10 * time.Millisecond

// Look returns when a caller that came at since has to look again, or why it fails
// now. The key says which server owes it an answer; if it is empty, refusals alone
// say whether one is owed. They may be nil, and are of those that ask for the
// caller.
func (s *Server) Look(key string, refusals *Refusals, since, now time.Time) (again time.Time, err error) {
	from, why := refusals.failing()
	if key != "" {
		if silent, failed := s.senders.at(key).silent(now); !silent.IsZero() && (from.IsZero() || silent.Before(from)) {
			from = silent
			if why == nil {
				why = failed
			}
		}
	}
	switch {
	case from.IsZero():
		return now.Add(max(s.Outage, soonest)), nil
	case from.Before(since):
		from = since
	}
	end := from.Add(s.Outage)
	if why == nil { // however short an outage may be, a request has the time of an attempt, or fails before
		why = ErrNoAnswer
		if attempt := from.Add(AttemptTimeout(s.Length)); now.Before(attempt) && end.Before(attempt) {
			return now.Add(soonest), nil
		}
	}
	if now.Before(end) {
		return end, nil
	}
	return end, &OutageError{Cause: why}
}

// silent returns since when the node owes an answer, and why a request has failed
// meanwhile, if one has. The time is zero if it owes none.
func (out *sender) silent(now time.Time) (since time.Time, why error) {
	out.mu.Lock()
	defer out.mu.Unlock()
	if out.asked.IsZero() || out.count == 0 && now.Sub(out.ended) > quietAfter {
		return since, nil
	}
	return out.asked, out.why
}

// NoAnswer returns why the server of this key does not answer: the last request of
// those that ask for the caller has failed, or the last one to that server, or one
// has been in flight for so long that the server is not just slow. nil: it does,
// or has not been asked for a while. refusals are as for Look.
func (s *Server) NoAnswer(key string, refusals *Refusals) error {
	if why := refusals.Why(); why != nil {
		return why
	}
	node := s.senders.at(key)
	asked, why := node.silent(time.Now())
	if asked.IsZero() || why != nil {
		return why
	}
	return node.late(asked)
}

// A Waiting is what a caller waits for that others ask for.
type Waiting struct {
	Key   string    // which server they ask: see Server.Look
	Asks  *Refusals // how that goes; may be nil
	Since time.Time // when the caller came
	Until time.Time // until when it waits; zero: for as long as its context lasts
	Stop  <-chan struct{}
	Held  interface{ Held() bool } // says whether somebody of this process has it: then it needs no answer; may be nil
	At    time.Time                // when Do is called, once; zero: never
	Do    func()
}

// Look is Server.Look for that caller.
func (w *Waiting) Look(s *Server, now time.Time) (again time.Time, err error) {
	again, err = s.Look(w.Key, w.Asks, w.Since, now)
	if err != nil && w.Held != nil && w.Held.Held() {
		return now.Add(AttemptTimeout(s.Length)), nil
	}
	return again, err
}

// Wait waits for what done delivers. It ends with ctx, Stop, Until and an outage.
func Wait[T any](ctx context.Context, s *Server, w *Waiting, done <-chan T) (v T, err error) {
	select {
	case v = <-done:
		return v, nil
	default:
	}
	t, pooled := s.timers.Get().(*time.Timer)
	if !pooled {
		t = time.NewTimer(time.Hour)
	}
	defer s.timers.Put(t)
	defer t.Stop()
	for look := w.Since.Add(s.Outage); ; {
		now := time.Now()
		if !w.Until.IsZero() && !now.Before(w.Until) {
			return v, ErrWaitOver
		}
		if !w.At.IsZero() && !now.Before(w.At) {
			w.At = time.Time{}
			w.Do()
		}
		if !now.Before(look) {
			if look, err = w.Look(s, now); err != nil {
				return v, err
			}
		}
		next := look
		for _, at := range [...]time.Time{w.Until, w.At} {
			if !at.IsZero() && at.Before(next) {
				next = at
			}
		}
		t.Reset(next.Sub(now))
		select {
		case v = <-done:
			return v, nil
		case <-ctx.Done():
			return v, ContextError(ctx)
		case <-w.Stop:
			return v, ErrClosed
		case <-t.C:
		}
	}
}

// Outlasted says that err is the end of an outage for whoever has asked. Those it
// has asked for see for themselves.
func Outlasted(err error) bool {
	_, is := err.(*OutageError) //nolint:errorlint // never wrapped
	return is
}
