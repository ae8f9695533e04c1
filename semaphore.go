package redlatch

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/redlatch/redlatch/internal/lua"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/script"
	"github.com/redlatch/redlatch/internal/wire"
)

// A Semaphore is the name of a number of permits, with the words to acquire and
// release them. It is immutable, cheap, holds no resources, and may be shared,
// copied and forgotten.
//
// What it does not promise: permits have no owner and no lease. What a process
// held when it crashed is lost until somebody adds it again, and nobody is told.
// Where that matters use an expirable semaphore, whose permits come back. Nor does
// Redis check a release: whoever releases more than he acquired makes permits.
//
// In Redis it is Redisson's RSemaphore: the number of permits that are free. It
// must be there before anybody can acquire: make it with TrySetPermits, or by
// releasing what there is to be had.
//
// A change is made exactly once, whatever becomes of replies and requests, as
// long as this client lives and the server keeps its data.
type Semaphore struct {
	c       *Client
	name    string
	channel string
	keys    []string // of its scripts
	err     error    // a name that cannot be used
}

// maxPermits is the largest number that Redisson can count to.
const maxPermits = math.MaxInt32

// Semaphore returns the semaphore with this name, Redisson's getSemaphore. A
// name that Redis could not handle (empty, or with unbalanced braces) is refused
// by every method of the Semaphore.
func (c *Client) Semaphore(name string) *Semaphore {
	s := &Semaphore{c: c, name: name, channel: wire.Prefix(wire.SemaphoreChannel, name), keys: []string{name}}
	s.err = checkName(name)
	return s
}

// Name returns the semaphore's name.
func (s *Semaphore) Name() string { return s.name }

// Acquire waits until n permits are free and takes them, all at once. ctx and
// the option Wait bound the waiting; no other option makes sense here.
//
// Goroutines of one process get permits in the order in which they asked: one
// that wants many is not overtaken by those that want few, and what is released
// goes on to the next one without a round trip. Between processes there is no
// order, but each gets its turn; a caller that wants many at once can still be
// kept waiting by other processes that want few, as with Redisson.
//
// On failure nothing has been taken; what a request under way takes in the end
// goes to the next caller, or back. The error is a *BusyError if the permits
// could not be had in time (and then also ctx's error, if ctx ended),
// ErrUnavailable if the server did not answer for Config.OutageTimeout, an
// *AckError if too few replicas acknowledged it, ErrClosed after Close, or the error
// with which the server refused.
//
// n = 0 succeeds without asking anybody.
func (s *Semaphore) Acquire(ctx context.Context, n int, opts ...Option) error {
	o, err := collectAny(opts, false)
	if err == nil && (o.hasLease || o.fenced) {
		err = errNoSuchPermit
	}
	if err != nil {
		return err
	}
	return s.acquire(ctx, n, &o)
}

var errNoSuchPermit = errors.New("redlatch: the permits of a Semaphore have neither a lease nor a token; acquire those of an expirable semaphore instead, or leave the option out")

// Try takes n permits if they are free. It never waits for permits, and
// overtakes nobody in this process who does. If it cannot have them it returns a
// *BusyError, and nothing has changed. n = 0 succeeds without asking anybody.
func (s *Semaphore) Try(ctx context.Context, n int) error {
	return s.acquire(ctx, n, &options{once: true})
}

func (s *Semaphore) acquire(ctx context.Context, n int, o *options) error {
	if err := s.usable(ctx, n); err != nil {
		return err
	}
	if err := s.c.open(); err != nil {
		return err
	}
	if n == 0 {
		return nil
	}
	until := o.until()
	err := request.ContextError(ctx)
	if err == nil {
		ln := s.c.permitLines.get(s)
		err = ln.acquire(ctx, n, o.once, until)
		s.c.permitLines.put(ln)
	}
	if err == nil {
		return nil
	}
	return asBusy(err, BusyError{Name: s.name, what: "semaphore %q was not acquired"})
}

// Release gives n permits back. It returns at once if anybody in this process
// waits for permits, and else when the server has confirmed it. Whoever calls it
// need not be who acquired them.
//
// If it fails because ctx has ended (before or during the call) or with
// ErrUnavailable, the permits are given back nevertheless, as soon as the server
// answers. Not so if the server refuses, or if the client is closed before: do
// not close it under permits that are held. If the server was away for so long, or
// has lost so much, that it cannot say whether it has them back (more than ten
// minutes), they are not given back again: Events.ReleaseFailed tells. n = 0 does
// nothing.
func (s *Semaphore) Release(ctx context.Context, n int) error {
	if err := s.usable(ctx, n); err != nil || n == 0 {
		return err
	}
	ln := s.c.permitLines.get(s)
	defer s.c.permitLines.put(ln)
	return ln.release(ctx, n)
}

// ReleaseIfExists gives n permits back if there is such a semaphore, and says
// whether there is; Release makes one. If it fails because ctx has ended or with
// ErrUnavailable, it may still be done. n = 0 does nothing, and returns false.
func (s *Semaphore) ReleaseIfExists(ctx context.Context, n int) (bool, error) {
	if err := s.usable(ctx, n); err != nil || n == 0 {
		return false, err
	}
	done, err := s.change(ctx, lua.SemaphoreAdd, s.channel, strconv.Itoa(n), "0")
	return done == 1, err
}

// TrySetPermits makes the semaphore, with n permits, if there is none of this
// name, and says whether it did. With a ttl other than 0 Redis removes it when
// that is over; whatever is released later makes a new one.
//
// Here and in the other methods that change a number: if it fails because ctx
// has ended or with ErrUnavailable, it may still be done, once.
func (s *Semaphore) TrySetPermits(ctx context.Context, n int, ttl time.Duration) (bool, error) {
	if err := s.usable(ctx, n); err != nil {
		return false, err
	}
	if ttl < 0 || ttl > maxLease {
		return false, fmt.Errorf("redlatch: a semaphore's TTL of %v; it must be positive and at most %v, or 0 for none", ttl, maxLease)
	}
	made, err := s.change(ctx, lua.SemaphoreSet, s.channel, strconv.Itoa(n), wire.Millis(ttl+time.Millisecond-1))
	return made == 1, err
}

// AddPermits changes the number of free permits by n, which may be negative, and
// so may the result: then as many permits more must be released before anybody
// gets one. It makes the semaphore if there is none. A TTL stays what it is;
// Redisson's addPermits removes it.
func (s *Semaphore) AddPermits(ctx context.Context, n int) error {
	if err := s.usable(ctx, max(n, -n)); err != nil {
		return err
	}
	_, err := s.change(ctx, lua.SemaphoreAdd, s.channel, strconv.Itoa(n), "1")
	return err
}

// Drain takes all free permits and returns how many they were. Less than none it
// sets to none. A TTL stays what it is; Redisson's drainPermits removes it.
func (s *Semaphore) Drain(ctx context.Context) (int, error) {
	if err := s.usable(ctx, 0); err != nil {
		return 0, err
	}
	n, err := s.change(ctx, lua.SemaphoreDrain)
	return int(n), err
}

// Available returns how many permits are free; without such a semaphore that is
// none. It may be less than none: see AddPermits.
func (s *Semaphore) Available(ctx context.Context) (int, error) {
	if err := s.usable(ctx, 0); err != nil {
		return 0, err
	}
	if err := s.c.open(); err != nil {
		return 0, err
	}
	o := s.c.question(lua.SemaphoreRead, s.name)
	reply, err := o.Run(ctx)
	return int(reply.Int), err
}

// Delete removes the semaphore and says whether there was one. Who waits for
// permits goes on waiting; who has some can release them, which makes it anew.
func (s *Semaphore) Delete(ctx context.Context) (bool, error) {
	if err := s.usable(ctx, 0); err != nil {
		return false, err
	}
	gone, err := s.change(ctx, lua.SemaphoreDelete)
	return gone == 1, err
}

// change sends a request on the session that these have for themselves.
func (s *Semaphore) change(ctx context.Context, script *script.Script, args ...string) (int64, error) {
	if err := s.c.open(); err != nil {
		return 0, err
	}
	if err := request.ContextError(ctx); err != nil {
		return 0, err
	}
	x, put := s.c.server.Sessions.Get(wire.Session(s.name, s.c.id, "change"))
	defer put()
	return x.Do(ctx, request.Count{Script: script, Keys: s.keys, Args: args, Acks: true})
}

// usable refuses what no method can work with.
func (s *Semaphore) usable(ctx context.Context, n int) error {
	switch {
	case ctx == nil:
		return errNilContext
	case s.err != nil:
		return s.err
	case n < 0:
		return fmt.Errorf("redlatch: %d permits; a number of permits must not be negative (AddPermits takes one that is)", n)
	case n > maxPermits:
		return fmt.Errorf("redlatch: %d permits; Redisson counts to %d", n, maxPermits)
	}
	return nil
}
