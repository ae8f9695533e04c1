package redlatch

import (
	"log/slog"
	"time"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/callsite"
	"github.com/redlatch/redlatch/internal/census"
	"github.com/redlatch/redlatch/internal/invalid"
	"github.com/redlatch/redlatch/internal/lock"
	"github.com/redlatch/redlatch/internal/renew"
	"github.com/redlatch/redlatch/internal/wire"
)

// Config configures a Client. The zero value works; every field says what zero
// means. New refuses values that do not fit together, with a sentence.
type Config struct {
	// Prefix stands in Redis before the name of all that the client uses, such as "billing:", so
	// that programs with prefixes of their own never meet. The program, its errors and events,
	// Info and lists use names without it. Locks, Objects, Counters and Participants find only
	// names that begin with it (a Question about owners: all that they have). For Redisson, for
	// redis-cli, and for clients without that prefix, it is a plain part of the name:
	// Lock("invoice:7") is Java's getLock("billing:invoice:7"). Package fence says keys as they
	// are in Redis, and so do errors about a key that is no lock, or about a name that cannot be
	// used. With a hash tag in it everything is in one slot of a cluster, where a CountDownLatch
	// is then refused. Empty means that names stand in Redis as they are; at most 100 bytes.
	Prefix string

	// WatchdogTimeout is the lease of a hold for which no Lease was given. It
	// is renewed every third of it for as long as the hold lives. Redisson
	// calls it lockWatchdogTimeout; give both sides the same value.
	// Zero means 30 seconds; at least 300 milliseconds.
	WatchdogTimeout time.Duration

	// MaxHold bounds how long the watchdog keeps a hold: when a hold has lasted
	// that long it is lost, with reason LostMaxHold, and renewed no more, so that a
	// hung worker does not keep a lock for ever: it is free when its holder
	// releases it, or when its lease in Redis ends. It is each hold's own: the holds
	// that it is nested in, or that share its owner, go on. Zero means no bound.
	MaxHold time.Duration

	// OutageTimeout is for how long a call keeps trying when the server does
	// not answer, before it fails with ErrUnavailable. It is counted from the server's
	// last answer: calls that wait for one another in this process, as those for one
	// lock do, fail together, but none before it has itself lasted so long, except those for one
	// RateLimiter. Zero means 10 seconds.
	OutageTimeout time.Duration

	// CloseTimeout bounds how long Close waits for requests that are in
	// flight. Zero means 3 seconds.
	CloseTimeout time.Duration

	// SlowWait is how long a caller waits for a lock that this very process
	// holds before Events.SlowWait is called, with both call sites: most often
	// the program deadlocks with itself. It is also for how long a circle of waits
	// has to stand before Participants reports a possible deadlock. Zero means
	// 10 seconds, negative means never, for both.
	SlowWait time.Duration

	// HandOff says whether a lock may pass between goroutines of this process
	// without going back to Redis in between. Zero means that it may.
	HandOff HandOff

	// FairLockWaitTimeout is what a place in the queue of a fair lock is worth where Redisson clients wait in it, too:
	// for so long one that has died keeps those behind it waiting. Redisson calls it fairLockWaitTimeout; give both sides
	// the same value. Redlatch's own waiters never depend on it: one that has died is passed over after six
	// seconds. Zero means 5 minutes; at least 5 seconds, at most a day.
	FairLockWaitTimeout time.Duration

	// PubSub says by which kind of Pub/Sub waiters are told. All clients that share
	// a lock must use the same, Redisson's too. Zero means what Redisson does.
	PubSub PubSub

	// TokenTTL is how long the fencing tokens of a lock that nobody acquires any
	// more are remembered; a lock that is acquired again later goes on with the
	// server's clock in microseconds, so its tokens still rise. Redisson knows
	// nothing of that: where Java acquires the same fenced locks, leave it at
	// zero, which means for ever. At least one minute. The numbers of an Election's
	// terms are remembered for ever, unless a FencedLock of its name has a TokenTTL.
	TokenTTL time.Duration

	// ServerName tells the Redis of this client from that of others, in log
	// lines and where a MultiLock has locks of the same name of several clients:
	// these are acquired in the order of their ServerNames. Give a Redis the
	// same name in every process. Empty means that the order of MultiLock's
	// arguments decides.
	ServerName string

	// Identity says who this client is: Client.Participants tells it to tools, and Info
	// shows it. Zero fields are filled in, except Name and Labels.
	// Everybody who may use the Redis can read it, so it is no place for secrets.
	// It is stored in Redis once the client has tried to acquire a lock.
	Identity Identity

	// TellSites lets the client say, when somebody asks with Participants, in which
	// lines of the program what it holds was acquired, and what it waits for. To find out
	// the line takes a good part of the time of a hand-off.
	TellSites bool

	// MaxClockSkew is by how much the clock of a Redisson client may differ from
	// the server's, where Redisson judges by its own: whether a value of a
	// GroupLock is still held, or a permit of an ExpirableSemaphore. redlatch
	// writes such times so much later, and believes those of Redisson's groups so
	// much longer. Zero means 1 second; negative means that
	// there is no Redisson client, or that its clock is the server's.
	MaxClockSkew time.Duration

	// Acks says how many replicas have to acknowledge an acquisition before it
	// counts. Zero means what Redisson does: with Sentinel and in a cluster one, if
	// the primary has any replica, and none with a single server.
	Acks Acks

	// AckTimeout is how long replicas have for their acknowledgement, which is how
	// long an acquisition takes at most if they are silent. Redisson calls it
	// slavesSyncTimeout. It is shortened to half of the time that an attempt has,
	// and to what the driver's time-outs allow. Zero means 1 second.
	AckTimeout time.Duration

	// Logger gets losses and failures. Nil means that nothing is logged. With a Logger, or with
	// Events.Lost, SlowWait or Dropped, each acquisition of a lock notes the line of the program that asks for it: that
	// takes a good part of the time of a hand-off, and little beside a round trip.
	Logger *slog.Logger

	// Events are called when something happens. The zero value calls nothing.
	Events Events
}

// HandOff says whether a lock may pass between goroutines of one process
// without a round trip.
type HandOff uint8

// The values of HandOff.
const (
	// HandOffLocal lets a released lock pass to the goroutine of this process
	// that has waited longest, within a quantum: after 32 hand-offs and one
	// millisecond, or after five milliseconds, waiting processes get a turn.
	HandOffLocal HandOff = iota
	// HandOffNone releases every lock in Redis before anybody else gets it.
	HandOffNone
)

const (
	defaultWatchdog = 30 * time.Second
	minWatchdog     = 300 * time.Millisecond
	minLease        = 20 * time.Millisecond
	minTokenTTL     = time.Minute
	maxClockSkew    = time.Hour
	maxLease        = renew.MaxLease
)

// withDefaults fills in the zero fields and checks the others.
func (c Config) withDefaults(t driver.Traits) (Config, error) {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&c.WatchdogTimeout, defaultWatchdog)
	def(&c.FairLockWaitTimeout, wire.DefaultFairWait)
	def(&c.OutageTimeout, 10*time.Second)
	def(&c.CloseTimeout, 3*time.Second)
	def(&c.SlowWait, 10*time.Second)
	def(&c.MaxClockSkew, time.Second)
	def(&c.AckTimeout, time.Second)
	c.MaxClockSkew = max(c.MaxClockSkew, 0).Truncate(time.Millisecond)
	c.OutageTimeout, c.AckTimeout = min(c.OutageTimeout, maxLease), min(c.AckTimeout, maxLease) // others are added to them
	who, err := census.Identity(c.Identity).WithDefaults()
	if err != nil {
		return c, invalid.Errorf("redlatch: Config.Identity: %w", err)
	}
	c.Identity = Identity(who)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if err := wire.CheckPrefix(c.Prefix); err != nil {
		return c, invalid.Errorf("redlatch: Config.Prefix %w", err)
	}
	switch {
	case c.WatchdogTimeout < minWatchdog:
		return c, invalid.Errorf("redlatch: Config.WatchdogTimeout is %v; it must be at least %v, or a renewal could not be retried in time", c.WatchdogTimeout, minWatchdog)
	case c.FairLockWaitTimeout < wire.LeastFairWait || c.FairLockWaitTimeout > wire.MostFairWait:
		return c, invalid.Errorf("redlatch: Config.FairLockWaitTimeout is %v; it must be at least %v, or Redisson would pass over waiters that live, and at most %v", c.FairLockWaitTimeout, wire.LeastFairWait, wire.MostFairWait)
	case c.WatchdogTimeout > maxLease:
		return c, invalid.Errorf("redlatch: Config.WatchdogTimeout is %v; it must be at most %v", c.WatchdogTimeout, maxLease)
	case c.MaxHold < 0:
		return c, invalid.Errorf("redlatch: Config.MaxHold is %v; it must be positive, or 0 for no bound", c.MaxHold)
	case c.MaxClockSkew > maxClockSkew:
		return c, invalid.Errorf("redlatch: Config.MaxClockSkew is %v; it must be at most %v, or clocks are of no use", c.MaxClockSkew, maxClockSkew)
	case c.OutageTimeout < 0:
		return c, invalid.Errorf("redlatch: Config.OutageTimeout is %v; it must be positive, or 0 for the default", c.OutageTimeout)
	case c.CloseTimeout < 0:
		return c, invalid.Errorf("redlatch: Config.CloseTimeout is %v; it must be positive, or 0 for the default", c.CloseTimeout)
	case c.TokenTTL != 0 && c.TokenTTL < minTokenTTL:
		return c, invalid.Errorf("redlatch: Config.TokenTTL is %v; it must be at least %v, or 0 for ever", c.TokenTTL, minTokenTTL)
	case c.HandOff > HandOffNone:
		return c, invalid.Errorf("redlatch: Config.HandOff is %d; use HandOffLocal or HandOffNone", c.HandOff)
	case c.PubSub > PubSubBoth:
		return c, invalid.Errorf("redlatch: Config.PubSub is %d; use PubSubAuto, PubSubClassic, PubSubSharded or PubSubBoth", c.PubSub)
	case c.Acks < AcksAny:
		return c, invalid.Errorf("redlatch: Config.Acks is %d; use AcksAuto, AcksOff, AcksBestEffort, AcksAny or the number of replicas", c.Acks)
	case c.AckTimeout < time.Millisecond:
		return c, invalid.Errorf("redlatch: Config.AckTimeout is %v; it must be at least 1ms, or 0 for the default", c.AckTimeout)
	case t.Timeout <= 0:
		return c, invalid.Errorf("redlatch: the %s driver has no read time-out, so a dead connection would never be noticed; set one of at most %v (a third of Config.WatchdogTimeout)", t.Name, c.WatchdogTimeout/3)
	case t.Timeout > c.WatchdogTimeout/3:
		return c, invalid.Errorf("redlatch: the %s driver notices a dead connection only after %v, which is more than a third of Config.WatchdogTimeout (%v): a hold would be lost before its renewal could be retried; lower the driver's time-outs for connecting, reading and writing or raise WatchdogTimeout", t.Name, t.Timeout, c.WatchdogTimeout)
	}
	return c, nil
}

// checkLease refuses leases that leave no time to trust them.
func checkLease(d time.Duration) error {
	if d < minLease {
		return invalid.Errorf("redlatch: a lease of %v is too short; it must be at least %v, of which %v are the safety margin", d, minLease, renew.Margin(minLease))
	}
	if d > maxLease {
		return invalid.Errorf("redlatch: a lease of %v is too long; leave Lease out, and the watchdog keeps the hold for as long as the process lives", d)
	}
	return nil
}

// An Option changes one acquisition.
type Option struct {
	wait, lease, atLeast          time.Duration
	hasWait, hasLease, hasAtLeast bool
	fenced                        bool
	untilSet                      bool
}

// Wait bounds how long Acquire and Do wait for the lock, in addition to their
// context. Wait(0) tries once, as Try does; then a server that does not answer is asked for
// Config.OutageTimeout. A negative d is refused by the call it is given to.
func Wait(d time.Duration) Option { return Option{wait: d, hasWait: true} }

// Lease gives the hold a fixed lease of d instead of the watchdog: it ends
// after d, less a safety margin of 10 ms + d/50, unless Extend raises it.
// Redis counts whole milliseconds; d is rounded up. A d of less than 20 ms is
// refused by the call it is given to.
//
// Holds that are nested in one another, or have one WithOwner, share one lease in Redis. Each of
// them lasts as long as the longest lease that any of them asked for, also if that one has been
// released, and without end while one of them has the watchdog. Only the read holds of a
// ReadWriteLock end when their own leases do.
func Lease(d time.Duration) Option { return Option{lease: d, hasLease: true} }

// Fenced gives the hold a fencing token: see Hold.Token. Every lock can be
// acquired so; a FencedLock always is.
func Fenced() Option { return Option{fenced: true} }

// HoldAtLeast keeps the lock for d from its acquisition, however soon it is released, for a job
// that is over so fast that a process whose clock is a little late would begin it once more. A hold
// that is released sooner ends as any other does: its context ends, and a Release that returns nil
// has left the lock to the rest of d. Nobody gets it before, in this process neither, unless
// by ForceRelease or ReleaseOwner. From then on nobody renews it.
//
// It does not last so long if the hold, or one that it is nested in, is lost and its lease ends in Redis
// before the release, by Config.MaxHold too; if the process dies (it lasts for its lease then); or if the
// client is closed before the release. With a Lease d may not be longer than that; Redis counts whole
// milliseconds, d is rounded up, and 0 keeps nothing. Locks that others may share or that stand in a queue, and several as
// one, refuse it: see Lock, NonReentrantLock, SpinLock, FencedLock, StripedLock.
func HoldAtLeast(d time.Duration) Option { return Option{atLeast: d, hasAtLeast: true} }

// UntilSet lets Acquire also wait until there is what it asks of: until somebody
// gives an ExpirableSemaphore its permits, or a RateLimiter its rate. Without it such
// a call fails with ErrUninitialized. A Semaphore needs no option for that: one that
// nobody has set has no permits, as any other may have none, and Acquire waits for
// some. Calls that do not wait refuse it, and those of which nothing can be set.
func UntilSet() Option { return Option{untilSet: true} }

var errNothingStays = invalid.Errorf("redlatch: HoldAtLeast is for a lock of its own; there is nothing here that could stay when it is released")

var errNothingToSet = invalid.Errorf("redlatch: UntilSet is for semaphores and rate limiters; there is nothing here that could not be set yet")

// refusals are why a call does not take an option; nil: it does. All that wait take Wait.
type refusals struct{ lease, fenced, atLeast, untilSet error }

// ofLocks are those of one lock, ofSeveral those of several as one.
var (
	ofLocks   = refusals{untilSet: errNothingToSet}
	ofSeveral = refusals{untilSet: errNothingToSet, atLeast: errNothingStays}
)

// ofWaits are those of a call after which nothing is held.
func ofWaits(call string) *refusals {
	no := func(option string) error {
		return invalid.Errorf("redlatch: %s takes no %s: there is nothing to hold", call, option)
	}
	return &refusals{lease: no("Lease"), fenced: no("Fenced"), atLeast: errNothingStays, untilSet: errNothingToSet}
}

// lockParams reads the options of a lock, which is wanted at a place of the user's program.
func lockParams(opts []Option, once bool, no *refusals, at callsite.Site) (lock.Params, error) {
	o, err := collect(opts, once, no)
	return lock.Params{Lease: o.lease, HasLease: o.hasLease, Try: o.once, Until: o.until, Fenced: o.fenced, AtLeast: o.atLeast, At: at}, err
}

// options are the sum of an acquisition's Options.
type options struct {
	Option
	once  bool      // Try, or Wait(0)
	until time.Time // until when it waits; zero: as long as its context lasts
}

// collect adds up the options of a call, which does not take all of them.
func collect(opts []Option, once bool, no *refusals) (options, error) {
	o := options{once: once}
	for _, p := range opts {
		if p.hasWait {
			o.wait, o.hasWait = p.wait, true
		}
		if p.hasLease {
			o.lease, o.hasLease = p.lease, true
		}
		if p.hasAtLeast {
			o.atLeast, o.hasAtLeast = p.atLeast, true
		}
		o.fenced = o.fenced || p.fenced
		o.untilSet = o.untilSet || p.untilSet
	}
	switch {
	case o.hasLease && no.lease != nil:
		return o, no.lease
	case o.fenced && no.fenced != nil:
		return o, no.fenced
	case o.hasAtLeast && no.atLeast != nil:
		return o, no.atLeast
	case o.untilSet && no.untilSet != nil:
		return o, no.untilSet
	}
	if o.hasWait && once {
		return o, invalid.Errorf("redlatch: Try does not wait; use Acquire with Wait")
	}
	if o.untilSet && (once || o.hasWait && o.wait == 0) {
		return o, invalid.Errorf("redlatch: UntilSet waits, and this call does not; use Acquire")
	}
	if o.hasWait && o.wait < 0 {
		return o, invalid.Errorf("redlatch: Wait(%v): a wait must not be negative", o.wait)
	}
	if o.hasLease {
		if err := checkLease(o.lease); err != nil {
			return o, err
		}
		o.lease = wholeMillis(o.lease)
	}
	switch {
	case o.atLeast < 0 || o.atLeast > maxLease:
		return o, invalid.Errorf("redlatch: HoldAtLeast(%v): it must not be negative, and be at most %v", o.atLeast, maxLease)
	case o.hasLease && o.atLeast > o.lease:
		return o, invalid.Errorf("redlatch: HoldAtLeast(%v) is longer than Lease(%v), after which others may have the lock; raise the lease", o.atLeast, o.lease)
	case o.atLeast > 0:
		o.atLeast = wholeMillis(o.atLeast)
	}
	switch {
	case o.hasWait && o.wait == 0:
		o.once = true
	case o.hasWait:
		o.until = time.Now().Add(o.wait)
	}
	return o, nil
}
