package topologies

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/faultnet"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/observe"
	"github.com/redlatch/redlatch/redisson"
	"github.com/redlatch/redlatch/semaphore"
	"github.com/redlatch/redlatch/tests/internal/drivers"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// servers are a primary with one replica.
type servers struct {
	*testing.T
	primary, replica *testserver.Server
}

// onReplicated tells a story through each adapter on each kind of server, all at
// the same time.
func onReplicated(t *testing.T, story func(s servers, open func() driver.Redis)) {
	t.Helper()
	locktest.Long(t)
	t.Parallel()
	for _, kind := range testserver.Kinds() {
		for _, adapter := range drivers.Adapters {
			t.Run(string(kind)+"/"+adapter.Name, func(t *testing.T) {
				t.Parallel()
				// A primary that gives a silent replica up requires nothing of it any more.
				s := servers{T: t, primary: testserver.Start(t, kind, "--repl-diskless-sync-delay", "0", "--repl-timeout", "600")}
				s.replica = testserver.StartReplica(t, s.primary)
				s.online(1)
				where := drivers.Single(s.primary.Addr())
				where.Timeout = 500 * time.Millisecond
				story(s, func() driver.Redis { return adapter.Open(t, where) })
			})
		}
	}
}

// online waits until the primary has n replicas, which are in step.
func (s servers) online(n int) {
	s.Helper()
	within(s.T, fmt.Sprintf("the primary has %d replicas", n), func() bool {
		v, err := s.primary.Do("INFO", "replication")
		return err == nil && strings.Count(fmt.Sprint(v), "state=online") == n
	})
	s.primary.MustDo("SET", "step", "1", "PX", "1")
	if got := s.primary.MustDo("WAIT", fmt.Sprint(n), "60000"); got != int64(n) {
		s.Fatalf("%v replicas are in step", got)
	}
}

// gone waits until the primary has nothing of that name, but for what remembers
// something about it.
func (s servers) gone(name string) {
	s.Helper()
	var left []string
	for end := time.Now().Add(generous); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		left = nil
		keys, _ := s.primary.MustDo("KEYS", "*"+name+"*").([]any)
		for _, key := range keys {
			switch key := fmt.Sprint(key); {
			case key != name && !strings.Contains(key, "{"+name+"}"):
			case strings.HasPrefix(key, "redlatch_"), strings.HasPrefix(key, "redisson_lock_token:"):
			default:
				left = append(left, key)
			}
		}
		if left == nil {
			return
		}
	}
	s.Errorf("left of %s: %q", name, left)
}

const ackTimeout = 100 * time.Millisecond

// acquire acquires what the replicas that live acknowledge. A busy machine may
// leave them too little time for it.
func (s servers) acquire(l *redlatch.Lock, ctx context.Context) (h *redlatch.Hold) {
	s.Helper()
	within(s.T, l.Name()+" is acquired", func() bool {
		var err error
		if h, err = l.Acquire(ctx); err != nil && !errors.Is(err, redlatch.ErrNotAcknowledged) {
			s.Fatal(l.Name(), err)
		}
		return err == nil
	})
	return h
}

// unacknowledged checks an error for what it should say when no replica answers.
func (s servers) unacknowledged(what string, err error, want int) {
	s.Helper()
	var short *redlatch.AckError
	if !errors.Is(err, redlatch.ErrNotAcknowledged) || !errors.As(err, &short) || short.Want != want || short.Got != 0 {
		s.Errorf("%s: %v, want that no replica of %d has acknowledged it", what, err, want)
	}
}

// An acquisition that the replica does not acknowledge is given back, of whatever
// type, and a re-entry is set back. When the replica is back all is as before.
func TestASilentReplica(t *testing.T) {
	onReplicated(t, func(s servers, open func() driver.Redis) {
		ctx := s.Context()
		c := client(s.T, open(), redlatch.Config{Acks: redlatch.AckAny, AckTimeout: ackTimeout})
		var events atomic.Int64
		best := client(s.T, open(), redlatch.Config{
			Acks: redlatch.AckBestEffort, AckTimeout: ackTimeout,
		})
		observe.Add(best, observe.Hooks{NotAcknowledged: func(e observe.NotAcknowledgedEvent) {
			s.unacknowledged(e.Name, e.Err, 1)
			events.Add(1)
		}})
		off := client(s.T, open(), redlatch.Config{AckTimeout: ackTimeout})
		semaphore, pool := semaphore.New(c, "semaphore", 0), semaphore.NewExpirable(c, "pool", 0)
		if _, err := semaphore.TrySetPermits(ctx, 2); err != nil {
			s.Fatal(err)
		}
		if _, err := pool.TrySetPermits(ctx, 2); err != nil {
			s.Fatal(err)
		}
		outer := s.acquire(c.Lock("outer"), ctx)
		locks := map[string]*redlatch.Lock{
			"lock": c.Lock("lock"), "fair": c.FairLock("fair"), "fenced": c.Lock("fenced", redlatch.Fenced()), "spin": redisson.SpinLock(c, "spin", nil),
			"write": c.ReadWriteLock("write").Write(), "read": c.ReadWriteLock("read").Read(), "group": redisson.GroupLock(c, "group", []string{"x"}),
		}

		s.replica.Pause()
		for kind, l := range locks {
			start := time.Now()
			_, err := l.Acquire(ctx)
			s.unacknowledged(kind, err, 1)
			if d := time.Since(start); d < ackTimeout || d > soon {
				s.Errorf("%s: Acquire took %v", kind, d)
			}
			if _, err = l.TryAcquire(ctx, 0); !errors.Is(err, redlatch.ErrBusy) { // what is given back may not have arrived yet
				s.unacknowledged("Try of "+kind, err, 1)
			}
		}
		s.unacknowledged("semaphore", semaphore.Acquire(ctx, 1), 1)
		_, err := pool.Acquire(ctx, 1)
		s.unacknowledged("pool", err, 1)
		_, err = c.Lock("outer").Acquire(outer.Context())
		s.unacknowledged("re-entry", err, 1)
		for kind := range locks {
			s.gone(kind)
		}
		within(s.T, "permits are back", func() bool {
			n, err := semaphore.Available(ctx)
			m, errPool := pool.Available(ctx)
			return errors.Join(err, errPool) == nil && n == 2 && m == 2
		})
		within(s.T, "the re-entry is set back", func() bool {
			return fmt.Sprint(s.primary.MustDo("HVALS", "outer")) == "[1]"
		})
		for name, other := range map[string]*redlatch.Client{"best": best, "off": off} {
			h, err := other.Lock(name).Acquire(ctx)
			if err != nil {
				s.Fatal(name, err)
			}
			if err := h.Release(ctx); err != nil {
				s.Error(name, err)
			}
		}
		within(s.T, "an event", func() bool { return events.Load() > 0 })
		if n := events.Load(); n != 1 {
			s.Errorf("%d events for one acquisition that was not acknowledged", n)
		}

		s.replica.Resume()
		for kind, l := range locks {
			within(s.T, kind+" is acquired again", func() bool {
				h, err := l.Acquire(ctx)
				if err != nil {
					s.unacknowledged(kind, err, 1)
					return false
				}
				return h.Release(ctx) == nil
			})
		}
		inner := s.acquire(c.Lock("outer"), outer.Context())
		for what, h := range map[string]*redlatch.Hold{"inner": inner, "outer": outer} {
			if err := h.Release(ctx); err != nil {
				s.Errorf("Release of %s: %v", what, err)
			}
		}
		s.gone("outer")
	})
}

// When the replica is dead, whoever wants any replica goes on without, and whoever
// requires one loses what he has, and is told before anybody else gets it.
func TestADeadReplica(t *testing.T) {
	onReplicated(t, func(s servers, open func() driver.Redis) {
		ctx := s.Context()
		either := client(s.T, open(), redlatch.Config{Acks: redlatch.AckAny, AckTimeout: ackTimeout})
		one := client(s.T, open(), redlatch.Config{Acks: redlatch.AckRequired, AckReplicas: 1, AckTimeout: ackTimeout, WatchdogTimeout: shortLease})
		kept := s.acquire(either.Lock("kept"), ctx)
		lost := s.acquire(one.Lock("lost"), ctx)
		off := client(s.T, open(), redlatch.Config{})
		next := make(chan error, 1)
		go func() {
			h, err := off.Lock("lost").Acquire(ctx)
			if err == nil && lost.Context().Err() == nil {
				err = errors.New("somebody else has the lock, and its holder has not been told")
			}
			if err == nil {
				err = h.Release(ctx)
			}
			next <- err
		}()

		s.replica.Kill()
		s.online(0)
		start := time.Now()
		for i := range 3 {
			h, err := either.Lock("free").Acquire(ctx)
			if err != nil {
				s.Fatalf("acquisition %d without a replica: %v", i, err)
			}
			if err := h.Release(ctx); err != nil {
				s.Error(err)
			}
		}
		if d := time.Since(start); d > soon {
			s.Errorf("three acquisitions without a replica took %v", d)
		}
		_, err := one.Lock("refused").Acquire(ctx)
		s.unacknowledged("Acquire", err, 1)
		s.gone("refused")
		if err := lost.Err(); err != nil {
			s.Errorf("lost at once: %v", err)
		}
		select {
		case err := <-next:
			if err != nil {
				s.Error(err)
			}
		case <-time.After(shortLease + generous):
			s.Fatal("the lock is not lost")
		}
		var why *redlatch.LostError
		if !errors.As(lost.Err(), &why) || why.Reason != redlatch.LostExpired {
			s.Errorf("the hold ended with %v", lost.Err())
		}
		if err := kept.Err(); err != nil {
			s.Errorf("who does not require a replica: %v", err)
		}
		if err := kept.Release(ctx); err != nil {
			s.Error(err)
		}

		s.replica.Restart()
		s.online(1)
		within(s.T, "who requires a replica goes on", func() bool {
			h, err := one.Lock("refused").Acquire(ctx)
			if err != nil {
				s.unacknowledged("Acquire", err, 1)
				return false
			}
			return h.Release(ctx) == nil
		})
	})
}

// A server that forbids WAIT or ROLE requires nothing, silently; whoever requires
// replicas is told why he cannot have them.
func TestWaitingForReplicasIsForbidden(t *testing.T) {
	onReplicated(t, func(s servers, open func() driver.Redis) {
		ctx := s.Context()
		s.replica.Pause() // nobody acknowledges anything
		for _, command := range []string{"wait", "role"} {
			s.primary.MustDo("ACL", "SETUSER", "default", "-"+command)
			for _, policy := range []redlatch.Acks{redlatch.AckAny, redlatch.AckBestEffort} {
				c := client(s.T, open(), redlatch.Config{Acks: policy})
				observe.Add(c, observe.Hooks{NotAcknowledged: func(e observe.NotAcknowledgedEvent) {
					s.Errorf("without %s: %v", command, e.Err)
				}})
				h, err := c.Lock(command).Acquire(ctx)
				if err != nil {
					s.Errorf("without %s: Acquire: %v", command, err)
					continue
				}
				if err := h.Release(ctx); err != nil {
					s.Errorf("without %s: Release: %v", command, err)
				}
			}
			c := client(s.T, open(), redlatch.Config{Acks: redlatch.AckRequired, AckReplicas: 1, AckTimeout: ackTimeout})
			_, err := c.Lock(command).Acquire(ctx)
			s.unacknowledged("without "+command, err, 1)
			if says := strings.Contains(err.Error(), "WAIT"); says != (command == "wait") {
				s.Errorf("without %s: %v", command, err)
			}
			s.gone(command)
			s.primary.MustDo("ACL", "SETUSER", "default", "+"+command)
		}
		s.replica.Resume()
	})
}

// One acknowledgement of two does not help if the other replica takes over; two
// do.
func TestOneAcknowledgementOfTwo(t *testing.T) {
	onReplicated(t, func(s servers, _ func() driver.Redis) {
		other := testserver.StartReplica(s.T, s.primary)
		s.online(2)
		var now atomic.Pointer[testserver.Server]
		now.Store(s.primary)
		proxy := faultnet.New(func(ctx context.Context) (net.Conn, error) { return now.Load().Dial(ctx) })
		s.Cleanup(proxy.Close)
		addr, err := proxy.Listen()
		if err != nil {
			s.Fatal(err)
		}
		open := func(cfg redlatch.Config) *redlatch.Client {
			cfg.AckTimeout = ackTimeout
			for _, adapter := range drivers.Adapters {
				if strings.HasSuffix(s.Name(), "/"+adapter.Name) {
					return client(s.T, adapter.Open(s.T, drivers.Single(addr)), cfg)
				}
			}
			return nil
		}
		either, both, next := open(redlatch.Config{Acks: redlatch.AckAny}), open(redlatch.Config{Acks: redlatch.AckRequired, AckReplicas: 2}), open(redlatch.Config{})

		other.Pause()
		s.primary.MustDo("CLIENT", "KILL", "TYPE", "replica") // what is on its way does not arrive
		s.onlineAtLeast(1)
		within(s.T, "one replica acknowledges what requires both", func() bool { // on a busy machine it may be late, too
			_, err := both.Lock("both").Acquire(s.Context())
			var short *redlatch.AckError
			if !errors.As(err, &short) || short.Want != 2 {
				s.Fatalf("who requires both replicas: %v", err)
			}
			return short.Got == 1
		})
		s.gone("both")
		hold := s.acquire(either.Lock("any"), s.Context())

		s.primary.Kill()
		s.replica.Kill()
		other.Resume()
		within(s.T, "the other replica takes over", func() bool {
			_, err := other.Do("REPLICAOF", "NO", "ONE")
			return err == nil
		})
		now.Store(other)
		second, err := next.Lock("any").Acquire(s.Context())
		if err != nil {
			s.Fatal(err)
		}
		within(s.T, "the first holder is told", func() bool { return errors.Is(hold.Err(), redlatch.ErrLost) })
		if err := second.Release(s.Context()); err != nil {
			s.Error(err)
		}
	})
}

// onlineAtLeast waits until so many replicas are in step.
func (s servers) onlineAtLeast(n int) {
	s.Helper()
	within(s.T, fmt.Sprintf("%d replicas acknowledge", n), func() bool {
		s.primary.MustDo("SET", "step", "1", "PX", "1")
		acked, _ := s.primary.MustDo("WAIT", fmt.Sprint(n), "100").(int64)
		return acked >= int64(n)
	})
}
