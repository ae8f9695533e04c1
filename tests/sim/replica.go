package sim

import (
	"context"
	"errors"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/driver"
)

// Replicated are the faults of a server with a replica. What a client was told
// then counts as if nothing was wrong.
func Replicated() []string { return []string{"lag", "takeover"} }

// A replica has what its primary had a while ago. The primary's mu guards it. A
// nil one is that of a primary which nobody waits for.
type replica struct {
	lag   time.Duration
	stood time.Time // it stands still: it has what it had then,
	until time.Time // for so long
	gone  bool      // it has taken over
	log   []snapshot
}

// replicate gives a primary a replica, if the type has any.
func (w *world) replicate(s *node) {
	if w.Type == "acked" {
		w.mu.Lock()
		n := len(w.nodes)
		w.mu.Unlock()
		s.replica = &replica{lag: newChance(w.Seed, uint64(200_000_000+n)).upTo(30 * time.Millisecond)}
		s.set(s.copyLocked)
	}
}

// sentLocked returns what a replica knows that has all.
func (s *node) sentLocked() []stored {
	if s.replica == nil {
		return nil
	}
	return s.snapshotLocked().keys
}

// streamLocked sends what is stored now to the replica, unless that is just what
// is known.
func (s *node) streamLocked(known []stored) (sent bool) {
	r := s.replica
	if r == nil {
		return false
	}
	now := s.snapshotLocked()
	if known != nil && reflect.DeepEqual(known, now.keys) {
		return false
	}
	r.log = append(r.log, now)
	has := r.hasLocked()
	for len(r.log) > 1 && !r.log[1].at.After(has) {
		r.log = r.log[1:]
	}
	return true
}

// copyLocked has the replica begin with what is stored now, however it lags.
func (s *node) copyLocked() {
	if s.replica != nil {
		s.replica.log = nil
		s.streamLocked(nil)
	}
}

// hasLocked returns of when the replica has all.
func (r *replica) hasLocked() time.Time {
	now := time.Now()
	if now.Before(r.until) {
		now = r.stood
	}
	return now.Add(-r.lag)
}

// stopLocked has the replica stand still.
func (r *replica) stopLocked(until time.Time) {
	if now := time.Now(); !now.Before(r.until) {
		r.stood = now
	}
	r.until = until
}

func (r *replica) goOnLocked() {
	if r != nil {
		r.until = time.Time{}
	}
}

// promote returns what the replica has, and has it follow no more.
func (s *node) promote() (has snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.replica
	r.gone = true
	has = r.log[0]
	for _, c := range r.log {
		if !c.at.After(r.hasLocked()) {
			has = c
		}
	}
	return has
}

// acknowledged says whether the replica has what was written at that time.
func (s *node) acknowledged(at time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.replica.gone && !s.replica.hasLocked().Before(at)
}

// replicates says whether a server's replica still follows it.
func (s *node) replicates() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.replica.gone
}

// takeover makes the replica the primary, and the old one ends. It may do so
// before: then it answers some processes for three seconds more.
func (w *world) takeover(old *node, f fault, down time.Duration) {
	if f.side != 0 {
		old.end()
	}
	was := old.promote()
	l := &loss{what: f.what, site: old.site, from: was.at.Sub(w.start), to: forever}
	w.history.mu.Lock()
	w.back = append(w.back, l)
	w.history.mu.Unlock()
	if f.side == 0 {
		w.succeed(old, was, f, 3*time.Second)
	} else {
		time.Sleep(down)
		w.succeed(old, was, f, 0)
	}
	w.history.mu.Lock()
	l.to = w.now()
	w.history.mu.Unlock()
}

// An ackedLink can wait for the replica.
type ackedLink struct{ *link }

func (l ackedLink) Traits() driver.Traits {
	t := l.link.Traits()
	t.Replicated = true
	return t
}

// Replicas is not asked where a number is required.
func (ackedLink) Replicas(context.Context, string) (int, error) {
	return 0, &driver.RunError{Outcome: driver.Refused, Err: errors.ErrUnsupported}
}

// RunAcked runs a script, and waits until the replica has what it has written,
// within what the driver's patience leaves. For what wrote nothing there is
// nothing to wait for: WAIT of Redis 8 and of Valkey asks only for what was
// written on the same connection, and others may have written before on theirs.
// Redis 7 would wait for that, too.
func (l ackedLink) RunAcked(_ context.Context, x *driver.Script, keys, args []string, _ int, timeout time.Duration) (driver.Reply, int, error) {
	var acked atomic.Int64
	r, err := l.run(x, keys, args, way{then: func(s *node, epoch int, wrote bool) bool {
		sent := time.Now()
		for end := sent.Add(min(timeout, patience/2)); ; time.Sleep(time.Millisecond) {
			if !wrote && s.replicates() || s.acknowledged(sent) {
				acked.Store(1)
				break
			}
			if !time.Now().Before(end) {
				break
			}
		}
		up, now, _ := s.reachable()
		return up && now == epoch
	}})
	return r, int(acked.Load()), err
}
