package holdctx

import (
	"context"
	"sync"
	"time"
)

// A Life is how far something held has come: whether it is over, who has heard
// of that, and the context that ends with it. A mutex of its owner guards it.
// It must be locked for each method but Under, and may be: none runs code of
// users.
type Life struct {
	Why      error    // it is over; nil while it is live
	Detached bool     // somebody else keeps it from now on
	told     bool     // its holder has been told so by its release
	context  lazy     // what Context returns
	observer Observer // of its end; nil: there is none, or it has been told
}

// Under says with which context it was acquired. It is called once, before the
// first Context and CutContext.
func (life *Life) Under(ctx context.Context) { life.context.Context = ctx }

// ContextLocked returns the context that ends with it.
func (life *Life) ContextLocked() context.Context { return life.context.get(life.Why) }

// EndLocked ends it and its context, unless it has ended before, and says
// whether it did.
func (life *Life) EndLocked(err error) bool {
	if life.Why != nil {
		return false
	}
	life.Why = err
	life.context.end(err)
	return true
}

// ReleaseLocked ends it for its holder, unless it has ended before. It says
// whether its holder releases it for the first time, and why it is over: from
// the second time on because it has been released, and nothing else.
func (life *Life) ReleaseLocked() (first bool, why error) {
	life.EndLocked(ErrReleased)
	if life.told {
		return false, ErrReleased
	}
	life.told = true
	return true, life.Why
}

// MineLocked says why its holder can say nothing of it any more: it is over, or
// detached; nil while it is neither.
func (life *Life) MineLocked() error {
	if life.Why == nil && life.Detached {
		return ErrDetached
	}
	return life.Why
}

// CutLocked ends the context of something live with err, and nothing else.
func (life *Life) CutLocked(err error) {
	if life.Why == nil {
		life.context.now(err)
	}
}

// ObserveLocked has o told of the end. If that has come already it returns why,
// and o is the caller's to tell.
func (life *Life) ObserveLocked(o Observer) error {
	if life.Why == nil {
		life.observer = o
	}
	return life.Why
}

// ObserverLocked returns the observer, for the one caller that is to tell it.
func (life *Life) ObserverLocked() Observer {
	o := life.observer
	life.observer = nil
	return o
}

// A State is a Life with a mutex of its own. What is held has one as a field,
// not embedded: whoever could end the state alone would leave the rest live.
type State struct {
	Mu sync.Mutex // guards the life, and what its owner puts beside it
	Life
}

// Context returns the context that ends with it.
func (s *State) Context() context.Context {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return s.ContextLocked()
}

// Over returns why it is over, without a look at the clock.
func (s *State) Over() error {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return s.Why
}

// Finish ends it, unless it has ended before, tells its observer, and returns
// why it is over.
func (s *State) Finish(err error) error {
	s.Mu.Lock()
	var o Observer
	if s.EndLocked(err) {
		o = s.ObserverLocked()
	}
	err = s.Why
	s.Mu.Unlock()
	Tell(o, EndOf(err), err)
	return err
}

// NoteRelease is ReleaseLocked for whoever has not locked Mu.
func (s *State) NoteRelease() (first bool, why error) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return s.ReleaseLocked()
}

// CutContext ends the context of something live with err, and nothing else.
func (s *State) CutContext(err error) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.CutLocked(err)
}

// Observe has o told of the end, at once if that has come already.
func (s *State) Observe(o Observer) {
	s.Mu.Lock()
	err := s.ObserveLocked(o)
	s.Mu.Unlock()
	if err != nil {
		Tell(o, EndOf(err), err)
	}
}

// Tell tells the observer, unless it has been told, that it ends now, without
// its holder's doing.
func (s *State) Tell(how End, err error) { Tell(s.observed(), how, err) }

// TellRelease tells the observer, unless it has been told, that its holder has
// let go of it at that time.
func (s *State) TellRelease(how End, at time.Time, err error) {
	if o := s.observed(); o != nil {
		o.Released(how, at, err)
	}
}

// observed returns the observer, for the one caller that is to tell it.
func (s *State) observed() Observer {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return s.ObserverLocked()
}
