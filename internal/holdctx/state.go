package holdctx

import (
	"context"
	"sync"
	"time"
)

// A State is how far something held has come: whether it is over, who has heard of
// that, and the context that ends with it. What is held has one as a field of its
// own, not embedded: whoever could end the state alone would leave the rest live.
type State struct {
	Mu       sync.Mutex // guards what follows, and what its owner puts beside it
	Why      error      // it is over; nil while it is live
	told     bool       // its holder has been told so by its release
	context  Lazy       // what Context returns
	observer Observer   // of its end; nil: there is none, or it has been told
}

// Under says with which context it was acquired. It is called once, before the
// first Context and CutContext.
func (s *State) Under(ctx context.Context) { s.context.Context = ctx }

// Context returns the context that ends with it.
func (s *State) Context() context.Context {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return s.context.Get(s.Why)
}

// Over returns why it is over, without a look at the clock.
func (s *State) Over() error {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return s.Why
}

// EndLocked ends it and its context, unless it has ended before, and says whether
// it did. Mu must be locked, and may be: that runs no code of users.
func (s *State) EndLocked(err error) bool {
	if s.Why != nil {
		return false
	}
	s.Why = err
	s.context.End(err)
	return true
}

// Finish ends it, unless it has ended before, tells its observer, and returns why
// it is over.
func (s *State) Finish(err error) error {
	s.Mu.Lock()
	var o Observer
	if s.EndLocked(err) {
		o = s.observedLocked()
	}
	err = s.Why
	s.Mu.Unlock()
	Tell(o, EndOf(err), err)
	return err
}

// NoteRelease ends it for its holder, unless it has ended before. It says whether
// its holder releases it for the first time, and why it is over: from the second
// time on because it has been released, and nothing else.
func (s *State) NoteRelease() (first bool, why error) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.EndLocked(ErrReleased)
	if s.told {
		return false, ErrReleased
	}
	s.told = true
	return true, s.Why
}

// CutContext ends the context of something live with err, and nothing else.
func (s *State) CutContext(err error) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if s.Why == nil {
		s.context.Now(err)
	}
}

// Observe has o told of the end, at once if that has come already.
func (s *State) Observe(o Observer) {
	s.Mu.Lock()
	err := s.Why
	if err == nil {
		s.observer = o
	}
	s.Mu.Unlock()
	if err != nil {
		Tell(o, EndOf(err), err)
	}
}

// Tell tells the observer, unless it has been told, that it ends now, without its
// holder's doing.
func (s *State) Tell(how End, err error) { Tell(s.observed(), how, err) }

// TellRelease tells the observer, unless it has been told, that its holder has let
// go of it at that time.
func (s *State) TellRelease(how End, at time.Time, err error) {
	if o := s.observed(); o != nil {
		o.Released(how, at, err)
	}
}

// observed returns the observer, for the one caller that is to tell it.
func (s *State) observed() Observer {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return s.observedLocked()
}

func (s *State) observedLocked() Observer {
	o := s.observer
	s.observer = nil
	return o
}
