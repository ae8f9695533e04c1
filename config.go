package redlatch

import (
	"log/slog"
	"time"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/census"
	"github.com/redlatch/redlatch/internal/invalid"
	"github.com/redlatch/redlatch/internal/renew"
	"github.com/redlatch/redlatch/internal/wire"
)

// Config configures a Client. The zero value works; every field says what zero
// means. New refuses values that do not fit together, with a sentence.
type Config struct {
	// Prefix stands in Redis before every name that the client uses, such as
	// "billing:". Programs with different prefixes never meet. The program itself uses
	// names without the prefix, in its errors and events, and in what package admin
	// tells, which finds only names that begin with the prefix. For Redisson, for
	// redis-cli, and for clients without the prefix, it is a plain part of the name:
	// Lock("invoice:7") is Java's getLock("billing:invoice:7"). Package fence, and
	// errors about keys that are no locks, show keys as they are. A hash tag in it
	// puts all into one slot of a cluster, where a latch is then refused. At most 100
	// bytes.
	Prefix string

	// WatchdogTimeout is the lease of a hold without the options Lease and Watchdog.
	// The watchdog renews it each time a third of it has passed, for as long as the
	// hold lives. Redisson calls it lockWatchdogTimeout; give both sides the same
	// value. Zero means 30 seconds; at least 300 milliseconds.
	WatchdogTimeout time.Duration

	// MaxHold bounds how long the watchdog keeps a hold without the option MaxHold, so
	// that a hung worker does not keep a lock for ever. Then the hold is lost, with
	// reason LostMaxHold, and the lock is free when its holder releases it, or its
	// lease ends. It counts for each hold by itself, also in a nest. Zero means no
	// bound.
	MaxHold time.Duration

	// OutageTimeout is how long a call keeps trying while the server does not answer.
	// After that it fails with ErrUnavailable. The time counts for each call by
	// itself, from when it began, or the server began to owe an answer, if that was
	// later. A request that is in flight at the end may take its time. Zero means 10
	// seconds.
	OutageTimeout time.Duration

	// CloseTimeout bounds how long Close waits for requests that are in flight, and
	// Shutdown, after the end of its context, for holders to release what they have.
	// Zero means 3 seconds.
	CloseTimeout time.Duration

	// SlowWait is how long a caller waits for a lock that this very process holds
	// before observe.Hooks.SlowWait is called, with both call sites. It is also how
	// long a circle of waits must stand before admin.Admin.Participants reports a
	// possible deadlock. Zero means 10 seconds, negative means never, for both.
	SlowWait time.Duration

	// NoHandOff releases every lock in Redis before anybody else gets it. Without it a
	// released lock passes to the goroutine of this process that has waited longest,
	// without a round trip. After 32 hand-offs and one millisecond, or after five
	// milliseconds, other processes that wait get a turn.
	NoHandOff bool

	// TokenTTL is how long Redis remembers the last fencing token of a lock that
	// nobody acquires any more. The tokens of a lock that is acquired again later go
	// on from the server's clock in microseconds, so they still rise. Redisson does
	// not do that: if Java acquires the same fenced locks, leave TokenTTL at zero, for
	// ever. At least one minute. The numbers of an election's terms have no TTL,
	// unless its name's Lock is acquired with Fenced.
	TokenTTL time.Duration

	// ServerName is a name for the Redis of this client. It stands in log lines. A
	// MultiLock that has locks of the same name, of several clients, acquires them in
	// the order of their ServerNames. So give a Redis the same name in every process.
	// Empty means that the order of MultiLock's arguments decides.
	ServerName string

	// Identity says who this client is. Package admin shows it. New fills in zero
	// fields, except Name and Labels. Every user of the Redis can read it, so it is no
	// place for secrets. It is stored in Redis once the client has tried to acquire a
	// lock.
	Identity Identity

	// CallSites lets the client say, when somebody asks with admin.Admin.Participants,
	// which lines of the program hold and wait. To find that out takes a good part of
	// the time of a hand-off, and little beside a round trip.
	CallSites bool

	// Acks says whether replicas must acknowledge an acquisition before it succeeds.
	// Zero means what Redisson does.
	Acks Acks

	// AckReplicas is how many replicas AckRequired requires, at least 1. Without it,
	// it must be 0.
	AckReplicas int

	// AckTimeout is how long an acquisition waits for replicas that do not acknowledge
	// it. Redisson calls it slavesSyncTimeout. It is at most half of an attempt's
	// time, and what the driver allows. Zero means 1 second.
	AckTimeout time.Duration

	// Redisson is what must agree with the clients of Redisson that use the same
	// locks.
	Redisson Redisson

	// Logger gets losses and failures. Nil means that nothing is logged. With a
	// Logger, or with Hooks.Lost, SlowWait or Dropped of package observe, each
	// acquisition notes the line that asks for it, as with CallSites.
	Logger *slog.Logger
}

// Redisson is what must agree with Redisson's clients that use the same locks,
// beside Config.WatchdogTimeout. Zero is Redisson's default, but for Codec.
type Redisson struct {
	// PubSub is how waiters are woken: all clients that share a lock must agree. Zero
	// means what Redisson does.
	PubSub PubSub

	// Codec is the codec of these clients, such as StringCodec, or the class that
	// their file names. If redlatch does not have it, every redisson.GroupLock is
	// refused. Empty means StringCodec.
	Codec string

	// FairLockWaitTimeout is for fair locks that Redisson clients wait for, too. One
	// that dies in the queue delays the waiters behind it by this time; one of
	// redlatch is passed over after six seconds. Redisson calls it
	// fairLockWaitTimeout; give both sides the same value. Zero means 5 minutes; at
	// least 5 seconds, at most a day.
	FairLockWaitTimeout time.Duration

	// MaxClockSkew is by how much the clock of a Redisson client may differ from the
	// server's. Redisson judges by its own clock whether a value of a
	// redisson.GroupLock is still held, or a permit with a lease. redlatch writes such
	// times later by MaxClockSkew, and believes those of Redisson's groups longer by
	// as much. Zero means 1 second; negative means that there is no Redisson client,
	// or that its clock is the server's.
	MaxClockSkew time.Duration
}

const (
	defaultWatchdog = 30 * time.Second
	minWatchdog     = 300 * time.Millisecond
	minTokenTTL     = time.Minute
	maxClockSkew    = time.Hour
	maxLease        = renew.MaxLease
)

// withDefaults fills in the zero fields and checks the others.
func (cfg Config) withDefaults(t driver.Traits) (Config, error) {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&cfg.WatchdogTimeout, defaultWatchdog)
	def(&cfg.Redisson.FairLockWaitTimeout, wire.DefaultFairWait)
	def(&cfg.OutageTimeout, 10*time.Second)
	def(&cfg.CloseTimeout, 3*time.Second)
	def(&cfg.SlowWait, 10*time.Second)
	def(&cfg.Redisson.MaxClockSkew, time.Second)
	def(&cfg.AckTimeout, time.Second)
	cfg.Redisson.MaxClockSkew = max(cfg.Redisson.MaxClockSkew, 0).Truncate(time.Millisecond)
	cfg.OutageTimeout, cfg.AckTimeout = min(cfg.OutageTimeout, maxLease), min(cfg.AckTimeout, maxLease) // others are added to them
	who, err := census.Identity(cfg.Identity).WithDefaults()
	if err != nil {
		return cfg, invalid.Errorf("redlatch: Config.Identity: %w", err)
	}
	cfg.Identity = Identity(who)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if err := wire.CheckPrefix(cfg.Prefix); err != nil {
		return cfg, invalid.Errorf("redlatch: Config.Prefix %w", err)
	}
	if err := checkWatchdog("Config.WatchdogTimeout", cfg.WatchdogTimeout, t); err != nil {
		return cfg, err
	}
	switch {
	case cfg.Redisson.FairLockWaitTimeout < wire.LeastFairWait || cfg.Redisson.FairLockWaitTimeout > wire.MostFairWait:
		return cfg, invalid.Errorf("redlatch: Config.Redisson.FairLockWaitTimeout is %v; it must be at least %v, or Redisson would pass over waiters that live, and at most %v", cfg.Redisson.FairLockWaitTimeout, wire.LeastFairWait, wire.MostFairWait)
	case cfg.MaxHold < 0:
		return cfg, invalid.Errorf("redlatch: Config.MaxHold is %v; it must be positive, or 0 for no bound", cfg.MaxHold)
	case cfg.Redisson.MaxClockSkew > maxClockSkew:
		return cfg, invalid.Errorf("redlatch: Config.Redisson.MaxClockSkew is %v; it must be at most %v, or clocks are of no use", cfg.Redisson.MaxClockSkew, maxClockSkew)
	case cfg.OutageTimeout < 0:
		return cfg, invalid.Errorf("redlatch: Config.OutageTimeout is %v; it must be positive, or 0 for the default", cfg.OutageTimeout)
	case cfg.CloseTimeout < 0:
		return cfg, invalid.Errorf("redlatch: Config.CloseTimeout is %v; it must be positive, or 0 for the default", cfg.CloseTimeout)
	case cfg.TokenTTL != 0 && cfg.TokenTTL < minTokenTTL:
		return cfg, invalid.Errorf("redlatch: Config.TokenTTL is %v; it must be at least %v, or 0 for ever", cfg.TokenTTL, minTokenTTL)
	case cfg.Redisson.PubSub > PubSubBoth:
		return cfg, invalid.Errorf("redlatch: Config.Redisson.PubSub is %d; use PubSubAuto, PubSubClassic, PubSubSharded or PubSubBoth", cfg.Redisson.PubSub)
	case cfg.Acks > AckRequired:
		return cfg, invalid.Errorf("redlatch: Config.Acks is %d; use AckAuto, AckOff, AckBestEffort, AckAny or AckRequired", cfg.Acks)
	case cfg.Acks == AckRequired && cfg.AckReplicas < 1:
		return cfg, invalid.Errorf("redlatch: Config.AckReplicas is %d with AckRequired; set it to how many replicas have to acknowledge, at least 1, or use AckAny, which requires one if there is any", cfg.AckReplicas)
	case cfg.Acks != AckRequired && cfg.AckReplicas != 0:
		return cfg, invalid.Errorf("redlatch: Config.AckReplicas is %d, but Config.Acks is %q; set Config.Acks to AckRequired, or leave AckReplicas out", cfg.AckReplicas, cfg.Acks)
	case cfg.AckTimeout < time.Millisecond:
		return cfg, invalid.Errorf("redlatch: Config.AckTimeout is %v; it must be at least 1ms, or 0 for the default", cfg.AckTimeout)
	}
	return cfg, nil
}

// checkWatchdog refuses a lease that the watchdog could not renew in time with a
// driver.
func checkWatchdog(what string, d time.Duration, t driver.Traits) error {
	switch {
	case d < minWatchdog:
		return invalid.Errorf("redlatch: %s is %v; it must be at least %v, or a renewal could not be retried in time", what, d, minWatchdog)
	case d > maxLease:
		return invalid.Errorf("redlatch: %s is %v; it must be at most %v", what, d, maxLease)
	case t.Timeout <= 0:
		return invalid.Errorf("redlatch: the %s driver has no read time-out, so a dead connection would never be noticed; set one of at most %v (a third of %s)", t.Name, d/3, what)
	case t.Timeout > d/3:
		return invalid.Errorf("redlatch: the %s driver notices a dead connection only after %v, which is more than a third of %s (%v): a hold would be lost before its renewal could be retried; lower the driver's time-outs for connecting, reading and writing or raise %s", t.Name, t.Timeout, what, d, what)
	}
	return nil
}
