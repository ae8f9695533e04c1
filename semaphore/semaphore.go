package semaphore

import (
	"context"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/args"
	"github.com/redlatch/redlatch/internal/bridge"
	"github.com/redlatch/redlatch/internal/callsite"
	"github.com/redlatch/redlatch/internal/hooks"
	"github.com/redlatch/redlatch/internal/invalid"
	"github.com/redlatch/redlatch/internal/lock"
	"github.com/redlatch/redlatch/internal/permit"
	"github.com/redlatch/redlatch/internal/renew"
	"github.com/redlatch/redlatch/internal/request"
)

// A Semaphore is the name of a number of permits, with the words to acquire and
// release them. It is immutable, cheap, holds no resources, and may be shared,
// copied and forgotten.
//
// What it does not promise: permits have no owner and no lease. What a process
// held when it crashed is lost until somebody adds it again, and nobody is told.
// Where that matters use an Expirable, whose permits come back. Nor does Redis
// check a release: a caller that releases more than it acquired makes permits.
//
// In Redis it is Redisson's RSemaphore: the number of permits that are free. It is
// set up by TrySetPermits, by Release, or by an acquisition of a Semaphore that
// New was given a number for.
//
// No change is made twice, and none is lost, whatever becomes of replies and
// requests, as long as this client lives and the server keeps its data.
type Semaphore struct {
	engines *bridge.Engines
	in      permit.Counted
	err     error // a name, or a number of permits to set it up with, that cannot be used
}

// New returns the semaphore with this name, Redisson's getSemaphore, and asks
// nobody. permits is how many permits it has if nobody has set it up. An
// acquisition that finds that, as at the first start, or after the server has lost
// its data, calls TrySetPermits with this number and goes on. It changes nothing
// if the semaphore is there, also with fewer permits, or none. Permits that
// somebody holds while the semaphore is removed, or lost with the server's data,
// are not counted: they come on top when they are released. If such a release
// comes first, it makes the semaphore, with what it gives back, and New's number
// is not used: call AddPermits.
//
// With 0 permits an acquisition of a semaphore that is not there fails with
// redlatch.ErrUninitialized. TrySetPermits(ctx, 0) sets up a semaphore that gets
// its permits from those who release them.
//
// A name that Redis could not handle (empty, or with unbalanced braces), and a
// number that is negative or more than Redisson can count, are refused by every
// method of the Semaphore.
func New(c *redlatch.Client, name string, permits int) *Semaphore {
	engines := bridge.Open(c)
	key := engines.Server.Key(name)
	return &Semaphore{engines: engines, in: engines.Semaphores.Counted(key, permits), err: nameable(key, permits)}
}

// nameable says why there cannot be a semaphore with this name in Redis, or to be
// set up with so many permits.
func nameable(key string, permits int) error {
	if permits < 0 || permits > permit.Most {
		return invalid.Errorf("redlatch: a semaphore to be set up with %d permits; it must be at least 1 and at most %d, or 0 if somebody else sets it up", permits, permit.Most)
	}
	return request.CheckKey(key)
}

// Name returns the semaphore's name.
func (s *Semaphore) Name() string { return s.in.Name() }

// Acquire waits until n permits are free and takes them, all at once. ctx bounds
// the waiting.
//
// Goroutines of one process get permits in the order in which they asked: one
// that wants many is not overtaken by those that want few, and what is released
// goes on to the next one without a round trip. Between processes there is no
// order, but each gets its turn; a caller that wants many at once can still be
// kept waiting by other processes that want few, as with Redisson.
//
// On failure nothing has been taken; what a request in flight takes in the end
// goes to the next caller, or back. The error is a *redlatch.BusyError if the
// permits could not be had in time (and then also ctx's error, if ctx ended),
// redlatch.ErrUninitialized if there is no such semaphore and New was given no
// number, redlatch.ErrUnavailable if the server did not answer for
// redlatch.Config.OutageTimeout or until the caller gave up, an *redlatch.AckError
// if too few replicas acknowledged it, redlatch.ErrInvalid if the name or n cannot
// be used, redlatch.ErrClosed after Close or Shutdown, or the error with which the
// server refused. If the semaphore is removed while a caller waits, the caller
// gets redlatch.ErrUninitialized within some seconds, or the semaphore is set up
// again.
//
// n = 0 succeeds without asking anybody.
func (s *Semaphore) Acquire(ctx context.Context, n int) error {
	_, err := s.acquire(ctx, n, args.Patience{}, s.engines.WaitSite())
	return err
}

// TryAcquire does what Acquire does, and waits no longer than wait. A negative
// wait is redlatch.ErrInvalid.
//
// With a wait of 0 it takes n permits if they are free. It never waits for permits
// then, and overtakes nobody in this process who does. If it cannot have them it
// returns a *redlatch.BusyError, and nothing has changed. If the server does not
// answer, such a call goes on for redlatch.Config.OutageTimeout, or until ctx
// ends. n = 0 succeeds without asking anybody.
func (s *Semaphore) TryAcquire(ctx context.Context, n int, wait time.Duration) error {
	_, err := s.acquire(ctx, n, args.AtMost(wait), s.engines.WaitSite())
	return err
}

// Do takes n permits, calls f and gives them back, also if f panics or calls
// runtime.Goexit. f's context is ctx, and ends with Do as well.
// redlatch.Client.Shutdown waits for Do, and ends f's context when Shutdown's own
// context ends. Close waits for nobody, and ends it, too. The cause is
// redlatch.ErrClosed.
//
// Do returns f's error. If the permits cannot be had, f is not called, and the
// error is Acquire's. Permits that do not come back, because the server refuses
// them or the client is closed before, are reported as an event
// (observe.Hooks.ReleaseFailed), and are no error of Do: the work is done. They
// are lost, without an event, if the process dies meanwhile: see Expirable.
func (s *Semaphore) Do(ctx context.Context, n int, f func(ctx context.Context) error) error {
	_, err := s.do(ctx, n, args.Patience{}, f, s.engines.WaitSite())
	return err
}

// TryDo does what Do does, and waits for the permits no longer than wait, as
// TryAcquire does. It says whether it called f. If it did not, because there were
// too few permits, the error is a *redlatch.BusyError.
func (s *Semaphore) TryDo(ctx context.Context, n int, wait time.Duration, f func(ctx context.Context) error) (ran bool, err error) {
	return s.do(ctx, n, args.AtMost(wait), f, s.engines.WaitSite())
}

func (s *Semaphore) do(ctx context.Context, n int, wait args.Patience, f func(ctx context.Context) error, at callsite.Site) (ran bool, err error) {
	if f == nil {
		return false, args.ErrNilFunction
	}
	section := s.in.Begin(n)
	defer section.End()
	ctx, err = s.acquire(ctx, n, wait, at)
	if err != nil {
		return false, err
	}
	return true, lock.Do(ctx, section, f)
}

// acquire returns the context with which the permits were acquired.
func (s *Semaphore) acquire(ctx context.Context, n int, wait args.Patience, at callsite.Site) (context.Context, error) {
	until, once, err := wait.End()
	ctx, a := s.engines.Begin(ctx, hooks.Acquisition{Name: s.in.Name(), Kind: string(redlatch.KindSemaphore), N: n}, once)
	if err == nil {
		err = s.usable(ctx, n)
	}
	handedOff := false
	if err == nil {
		handedOff, err = s.in.Acquire(ctx, n, once, until, at)
	}
	a.Counted(handedOff, err)
	return ctx, err
}

// Release gives n permits back. It returns at once if anybody in this process
// waits for permits, and else when the server has confirmed it. Whoever calls it
// need not be who acquired them.
//
// If it fails because ctx has ended (before or during the call) or with
// redlatch.ErrUnavailable, the permits are given back nevertheless, as soon as the
// server answers. Not so if the server refuses, or if the client is closed before:
// do not close it under permits that are held. If the server was away for so long,
// or has lost so much, that it cannot say whether it has them back (more than ten
// minutes), they are not given back again: observe.Hooks.ReleaseFailed tells. n =
// 0 does nothing.
func (s *Semaphore) Release(ctx context.Context, n int) error {
	if err := s.usable(ctx, n); err != nil || n == 0 {
		return err
	}
	return s.in.Release(ctx, n)
}

// ReleaseIfExists gives n permits back if there is such a semaphore, and says
// whether there is; Release makes one. If it fails because ctx has ended or with
// redlatch.ErrUnavailable, it may still be done. n = 0 does nothing, and returns
// false.
func (s *Semaphore) ReleaseIfExists(ctx context.Context, n int) (bool, error) {
	if err := s.usable(ctx, n); err != nil || n == 0 {
		return false, err
	}
	return s.in.Add(ctx, n, false)
}

// TrySetPermits makes the semaphore, with n permits, if there is none of this
// name, and says whether it did.
//
// Here and in the other methods that change a number: if it fails because ctx
// has ended or with redlatch.ErrUnavailable, it may still be done, once.
func (s *Semaphore) TrySetPermits(ctx context.Context, n int) (bool, error) {
	return s.TrySetPermitsFor(ctx, n, 0)
}

// TrySetPermitsFor is TrySetPermits for a semaphore that Redis removes after ttl,
// or never if that is 0. Whatever is released later makes a new one.
func (s *Semaphore) TrySetPermitsFor(ctx context.Context, n int, ttl time.Duration) (bool, error) {
	if err := s.usable(ctx, n); err != nil {
		return false, err
	}
	if ttl < 0 || ttl > renew.MaxLease {
		return false, invalid.Errorf("redlatch: a semaphore's TTL of %v; it must be positive and at most %v, or 0 for none", ttl, renew.MaxLease)
	}
	return s.in.Set(ctx, n, ttl)
}

// AddPermits changes the number of free permits by n, which may be negative, and
// so may the result: then as many permits more must be released before anybody
// gets one. It makes the semaphore if there is none. A TTL stays what it is;
// Redisson's addPermits removes it.
func (s *Semaphore) AddPermits(ctx context.Context, n int) error {
	n = max(n, -permit.Most-1) // refused as well; the least int has no opposite
	if err := s.usable(ctx, max(n, -n)); err != nil {
		return err
	}
	_, err := s.in.Add(ctx, n, true)
	return err
}

// Drain takes all free permits and returns how many they were. Less than none it
// sets to none. A TTL stays what it is; Redisson's drainPermits removes it.
func (s *Semaphore) Drain(ctx context.Context) (int, error) {
	if err := s.usable(ctx, 0); err != nil {
		return 0, err
	}
	return s.in.Drain(ctx)
}

// Available returns how many permits are free; without such a semaphore that is
// none. It may be less than none: see AddPermits.
func (s *Semaphore) Available(ctx context.Context) (int, error) {
	if err := s.usable(ctx, 0); err != nil {
		return 0, err
	}
	return s.in.Available(ctx)
}

// Delete removes the semaphore and says whether there was one. Callers that wait
// for permits fail with redlatch.ErrUninitialized, or set it up again with the
// number that New was given. A caller that has some can release them, which makes
// it anew.
func (s *Semaphore) Delete(ctx context.Context) (bool, error) {
	if err := s.usable(ctx, 0); err != nil {
		return false, err
	}
	return s.in.Delete(ctx)
}

// Expire lets the semaphore end when d is over, at least a millisecond; what is
// released later makes it anew. It says whether there is such a semaphore.
func (s *Semaphore) Expire(ctx context.Context, d time.Duration) (bool, error) {
	return args.Expire(ctx, d, s.lives)
}

// Persist lets the semaphore last for ever: the reverse of Expire. It says whether
// there is such a semaphore.
func (s *Semaphore) Persist(ctx context.Context) (bool, error) { return s.lives(ctx, args.ForEver) }

func (s *Semaphore) lives(ctx context.Context, ms string) (bool, error) {
	if err := s.usable(ctx, 0); err != nil {
		return false, err
	}
	return s.in.Lives(ctx, ms)
}

// usable refuses what no method can work with.
func (s *Semaphore) usable(ctx context.Context, n int) error {
	switch {
	case ctx == nil:
		return args.ErrNilContext
	case s.err != nil:
		return s.err
	case n < 0:
		return invalid.Errorf("redlatch: %d permits; a number of permits must not be negative (AddPermits takes one that is)", n)
	case n > permit.Most:
		return invalid.Errorf("redlatch: %d permits; Redisson counts to %d", n, permit.Most)
	}
	return nil
}
