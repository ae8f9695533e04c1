package semaphore

import (
	"context"
	"encoding/hex"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/args"
	"github.com/redlatch/redlatch/internal/bridge"
	"github.com/redlatch/redlatch/internal/callsite"
	"github.com/redlatch/redlatch/internal/hooks"
	"github.com/redlatch/redlatch/internal/invalid"
	"github.com/redlatch/redlatch/internal/lock"
	"github.com/redlatch/redlatch/internal/lock/term"
	"github.com/redlatch/redlatch/internal/nameclash"
	"github.com/redlatch/redlatch/internal/permit"
	"github.com/redlatch/redlatch/internal/request"
)

// An Expirable is a semaphore whose permits have ids and leases: the permit of
// a holder that is gone comes back by itself. It is a name, immutable, and cheap.
//
// In Redis it is Redisson's RPermitExpirableSemaphore: a number of free permits,
// and a sorted set with the ids of the permits that are taken, and the times at
// which they end. redlatch writes and reads these times by the server's clock, and
// clients of Redisson by their own clocks. So redlatch writes them later than it
// trusts them, by redlatch.Config.Redisson.MaxClockSkew, and the permit of a
// holder that has crashed comes back that much later than its lease says.
//
// Its number of permits has to be set once, with TrySetPermits, or by the first
// acquisition if NewExpirable was given a number. Else Acquire fails with
// redlatch.ErrUninitialized.
//
// Goroutines of one process get permits in the order in which they asked, however
// many each wants. Between processes there is no order. A permit never passes from
// one goroutine to another without Redis.
type Expirable struct {
	engines *bridge.Engines
	in      permit.Expirable
	wish    term.Wish // how each permit is wanted
	give    int       // how many permits it is given if it has never been given any; 0: none
	err     error     // a name, a number or an option that cannot be used
}

// NewExpirable returns the semaphore with this name, Redisson's
// getPermitExpirableSemaphore, and asks nobody. permits is how many permits it has
// if nobody has set a number. An acquisition that finds that, as at the first
// start, or after the server has lost its data, calls TrySetPermits with this
// number and goes on. It changes nothing if a number was set. With 0 permits such
// an acquisition fails with redlatch.ErrUninitialized.
//
// Every method refuses a name that Redis cannot handle, and a number that is
// negative or more than Redisson can count. It also refuses "{x}" if this client
// has used "x", and the reverse: these share the times of their permits, as in
// Redisson. Each permit has the options.
func NewExpirable(c *redlatch.Client, name string, permits int, opts ...redlatch.HoldOption) *Expirable {
	engines := bridge.Open(c)
	key := engines.Server.Key(name)
	wish, err := bridge.Wish(engines.Server, opts)
	if bad := nameable(key, permits); bad != nil {
		err = bad
	}
	return &Expirable{engines: engines, in: engines.Semaphores.Expirable(key), wish: wish, give: permits, err: err}
}

// Name returns the semaphore's name.
func (s *Expirable) Name() string { return s.in.Name() }

// Acquire waits for n permits at once: it gets all of them or none. ctx bounds the
// waiting and nothing else. If there are never n permits in all, it waits for its
// context's end.
//
// Without the option redlatch.Lease the watchdog keeps the permits for as long as
// the process lives, and they are free again within
// redlatch.Config.WatchdogTimeout, or the option redlatch.Watchdog, plus
// redlatch.Config.Redisson.MaxClockSkew after a crash.
//
// On failure nothing is held, and whatever was in flight is undone in the
// background. The error is a *redlatch.BusyError if there were not enough permits
// in time (and then also ctx's error, if ctx ended), redlatch.ErrUninitialized if
// nobody has set a number and NewExpirable was given none, redlatch.ErrUnavailable
// if the server did not answer for redlatch.Config.OutageTimeout or until the
// caller gave up, an *redlatch.AckError if too few replicas acknowledged it,
// redlatch.ErrInvalid if n, the name or an option cannot be used,
// redlatch.ErrClosed after Close or Shutdown, or the error with which the server
// refused.
func (s *Expirable) Acquire(ctx context.Context, n int) (*redlatch.Hold, error) {
	_, hold, err := s.acquire(ctx, n, args.Patience{}, s.engines.HoldSite())
	return hold, err
}

// TryAcquire does what Acquire does, and waits no longer than wait. A negative
// wait is redlatch.ErrInvalid. With a wait of 0 it acquires the permits if they
// are free at once, and overtakes no caller of this process that waits. Else it
// returns a *redlatch.BusyError and changes nothing. If the server does not
// answer, such a call goes on for redlatch.Config.OutageTimeout, or until ctx
// ends.
func (s *Expirable) TryAcquire(ctx context.Context, n int, wait time.Duration) (*redlatch.Hold, error) {
	_, hold, err := s.acquire(ctx, n, args.AtMost(wait), s.engines.HoldSite())
	return hold, err
}

// Do acquires n permits, calls f and releases them, also if f panics or calls
// runtime.Goexit. f's context is ctx together with the permits' end: see
// redlatch.Hold.With. In f, redlatch.HoldFrom returns their hold.
//
// Do returns f's error. If a permit was lost while f ran, redlatch.ErrLost is
// joined to it once. If there were not enough permits, Do does not call f, and
// returns Acquire's error.
func (s *Expirable) Do(ctx context.Context, n int, f func(ctx context.Context) error) error {
	_, err := s.do(ctx, n, args.Patience{}, f, s.engines.HoldSite())
	return err
}

// TryDo does what Do does, and waits for the permits no longer than wait, as
// TryAcquire does. It says whether it called f. If it did not, because there were
// not enough permits, the error is a *redlatch.BusyError.
func (s *Expirable) TryDo(ctx context.Context, n int, wait time.Duration, f func(ctx context.Context) error) (ran bool, err error) {
	return s.do(ctx, n, args.AtMost(wait), f, s.engines.HoldSite())
}

func (s *Expirable) do(ctx context.Context, n int, wait args.Patience, f func(ctx context.Context) error, at callsite.Site) (ran bool, err error) {
	if f == nil {
		return false, args.ErrNilFunction
	}
	ctx, hold, err := s.acquire(ctx, n, wait, at)
	if err != nil {
		return false, err
	}
	return true, lock.Do(ctx, hold, f)
}

// acquire returns the hold of the permits, and the context with which they were
// acquired.
func (s *Expirable) acquire(ctx context.Context, n int, wait args.Patience, at callsite.Site) (context.Context, *redlatch.Hold, error) {
	until, once, bad := wait.End()
	want := permit.Want{
		N: n, Lease: s.wish.Lease, HasLease: s.wish.HasLease, MaxHold: s.wish.MaxHold, Once: once, Permits: s.give, Until: until, Site: at, Note: s.wish.Note,
	}
	ctx, a := s.engines.Begin(ctx, hooks.Acquisition{Name: s.in.Name(), Kind: string(redlatch.KindExpirable), N: n}, once)
	ps, err := s.take(ctx, want, bad)
	var hold *redlatch.Hold
	if err == nil {
		hold = holdOf(ps)
	}
	a.Permits(ps, err)
	return ctx, hold, err
}

// holdOf makes one hold of permits that were acquired at once.
func holdOf(ps []*permit.Permit) *redlatch.Hold {
	var in any = ps[0]
	if len(ps) > 1 {
		in = permit.Together(ps)
	}
	return bridge.NewHold(in).(*redlatch.Hold) //nolint:forcetypeassert // as it says
}

// take acquires permits, unless something is bad about the call.
func (s *Expirable) take(ctx context.Context, want permit.Want, bad error) ([]*permit.Permit, error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	switch {
	case bad != nil:
		return nil, bad
	case want.N < 1 || want.N > permit.MostAtOnce:
		return nil, invalid.Errorf("redlatch: %d permits cannot be acquired at once; ask for 1 to %d", want.N, permit.MostAtOnce)
	case ctx.Err() != nil:
		return nil, &redlatch.BusyError{Name: s.in.Name(), Kind: redlatch.KindExpirable, Cause: request.ContextError(ctx)}
	}
	return s.in.Acquire(ctx, want)
}

// usable says what is wrong with a call that uses ctx.
func (s *Expirable) usable(ctx context.Context) error {
	return s.engines.UsableName(ctx, s.err, nameclash.Permits, s.in.Key)
}

// TrySetPermits gives the semaphore n permits, if it has not been given any
// before, and says whether it did.
func (s *Expirable) TrySetPermits(ctx context.Context, n int) (bool, error) {
	if err := s.settable(ctx, n, 0); err != nil {
		return false, err
	}
	return s.in.TrySet(ctx, n, nil)
}

// SetPermits sets how many permits there are in all, those included that are
// given. If more are given than that, the next ones that come back are not given
// again.
func (s *Expirable) SetPermits(ctx context.Context, n int) error {
	if err := s.settable(ctx, n, 0); err != nil {
		return err
	}
	return s.in.Set(ctx, n)
}

// AddPermits adds n permits, or takes -n away if n is negative; then less than
// none may be free for a time.
func (s *Expirable) AddPermits(ctx context.Context, n int) error {
	if err := s.settable(ctx, n, -permit.Most); err != nil {
		return err
	}
	return s.in.Add(ctx, n)
}

var errNegativePermits = invalid.Errorf("redlatch: a semaphore cannot have less than no permits; AddPermits takes some away")

// settable says what is wrong with a call that gives the semaphore n permits, at
// least least.
func (s *Expirable) settable(ctx context.Context, n, least int) error {
	if n < 0 && least == 0 {
		return errNegativePermits
	}
	if err := s.usable(ctx); err != nil {
		return err
	}
	if n > permit.Most || n < least {
		return invalid.Errorf("redlatch: %d permits are more than Redisson can count; use %d to %d", n, least, permit.Most)
	}
	return nil
}

// Delete deletes the semaphore, and says whether there was one. Its permits are
// gone with it; their holders learn that with their next renewal, those of this
// client at once. Callers that wait fail with redlatch.ErrUninitialized, or set it
// up again with the number that NewExpirable was given.
func (s *Expirable) Delete(ctx context.Context) (bool, error) {
	if err := s.usable(ctx); err != nil {
		return false, err
	}
	return s.in.Delete(ctx)
}

// Expire lets the semaphore end when d is over, at least a millisecond, and its
// permits with it; holders learn that with their next renewal. It says whether
// there is such a semaphore.
func (s *Expirable) Expire(ctx context.Context, d time.Duration) (bool, error) {
	return args.Expire(ctx, d, s.lives)
}

// Persist lets the semaphore last for ever: the reverse of Expire. It says whether
// there is such a semaphore.
func (s *Expirable) Persist(ctx context.Context) (bool, error) {
	return s.lives(ctx, args.ForEver)
}

func (s *Expirable) lives(ctx context.Context, ms string) (bool, error) {
	if err := s.usable(ctx); err != nil {
		return false, err
	}
	return s.in.Lives(ctx, ms)
}

// Available returns how many permits are free. It is less than 0 if permits were
// taken away that are given.
func (s *Expirable) Available(ctx context.Context) (int, error) {
	free, _, err := s.count(ctx)
	return free, err
}

// Acquired returns how many permits are given.
func (s *Expirable) Acquired(ctx context.Context) (int, error) {
	_, given, err := s.count(ctx)
	return given, err
}

// Permits returns how many permits there are in all; 0 if it has never been given
// any.
func (s *Expirable) Permits(ctx context.Context) (int, error) {
	free, given, err := s.count(ctx)
	return free + given, err
}

func (s *Expirable) count(ctx context.Context) (free, given int, err error) {
	if err := s.usable(ctx); err != nil {
		return 0, 0, err
	}
	return s.in.Count(ctx)
}

// Release gives permits back by their ids, wherever they were acquired: all of
// them, or none, if one of them has been released or has expired; then it returns
// redlatch.ErrNotHeld. A Hold of this process that has one of the ids ends before,
// as if by its own Release.
//
// Release works with a context that has ended, as redlatch.Hold.Release does. It
// changes the semaphore once, whatever replies are lost. What is released while
// the answer to another Release is awaited goes with the next request, for up to
// 50 callers. Without ids it does nothing.
func (s *Expirable) Release(ctx context.Context, ids ...string) error {
	if len(ids) == 0 {
		return s.usable(ctx)
	}
	raw, err := s.identify(ctx, ids)
	if err != nil {
		return err
	}
	return s.in.Release(ctx, raw)
}

// Extend raises the lease of a permit, wherever it was acquired, to d from now, if
// it is not longer already; it never shortens it. It returns redlatch.ErrNotHeld
// if the permit has been released or has expired. One of this process is extended
// as by its own Extend.
func (s *Expirable) Extend(ctx context.Context, id string, d time.Duration) error {
	raw, err := s.identify(ctx, []string{id})
	if err != nil {
		return err
	}
	p := s.in.Live(raw[0])
	if d, err = args.Extension(ctx, d, p != nil && p.Kept()); err != nil {
		return err
	}
	if p != nil {
		return p.Extend(ctx, d)
	}
	return s.in.Extend(ctx, raw[0], d)
}

// LeaseLeft returns for how long Redis keeps a permit unless somebody extends it,
// or -1 if for ever, as Redisson clients can acquire it. That is longer than its
// holder may trust it, by redlatch.Config.Redisson.MaxClockSkew if it is
// redlatch's. It returns redlatch.ErrNotHeld if the permit has been released or
// has expired.
func (s *Expirable) LeaseLeft(ctx context.Context, id string) (time.Duration, error) {
	raw, err := s.identify(ctx, []string{id})
	if err != nil {
		return 0, err
	}
	return s.in.Left(ctx, raw[0])
}

// identify checks what methods that work on ids are given.
func (s *Expirable) identify(ctx context.Context, ids []string) ([]string, error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	if len(ids) == 0 || len(ids) > permit.MostAtOnce {
		return nil, invalid.Errorf("redlatch: %d ids of permits; give 1 to %d", len(ids), permit.MostAtOnce)
	}
	return rawIDs(ids)
}

// rawIDs reads ids as the API has them.
func rawIDs(ids []string) ([]string, error) {
	raw := make([]string, len(ids))
	for i, id := range ids {
		b, err := hex.DecodeString(id)
		if err != nil || len(b) != 16 {
			return nil, invalid.Errorf("redlatch: %q is not the id of a permit: that has 32 hexadecimal digits", id)
		}
		raw[i] = string(b)
	}
	return raw, nil
}
