package multi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/callsite"
	"github.com/redlatch/redlatch/internal/claim"
	"github.com/redlatch/redlatch/internal/fact"
	"github.com/redlatch/redlatch/internal/handoff"
	"github.com/redlatch/redlatch/internal/holdctx"
	"github.com/redlatch/redlatch/internal/leaktest"
	"github.com/redlatch/redlatch/internal/lock"
	"github.com/redlatch/redlatch/internal/lock/term"
	"github.com/redlatch/redlatch/internal/nameclash"
	"github.com/redlatch/redlatch/internal/puppet"
	"github.com/redlatch/redlatch/internal/renew"
	"github.com/redlatch/redlatch/internal/request"
)

// The engine on servers in memory, in a time of its own.

func TestMain(m *testing.M) { leaktest.Main(m) }

const watchdog = 30 * time.Second

// A server answers after a delay, but renewals at once. What it is asked is
// executed then, also if nobody waits for the answer any more.
type server struct {
	*puppet.Puppet
	name string
	log  *log

	mu    sync.Mutex
	delay time.Duration
}

// A log has the requests for locks, in the order in which they came.
type log struct {
	mu  sync.Mutex
	all []string
}

// take returns what has come since the last take, but for renewals.
func (l *log) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := strings.Join(l.all, ", ")
	l.all = nil
	return all
}

// slow says how long each answer takes from now on.
func (s *server) slow(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delay = d
}

func (s *server) Run(ctx context.Context, x *driver.Script, keys, args []string) (driver.Reply, error) {
	s.mu.Lock()
	delay := s.delay
	s.mu.Unlock()
	renews := strings.HasSuffix(x.Name(), ".renew")
	if !renews {
		s.log.mu.Lock()
		s.log.all = append(s.log.all, fmt.Sprint(x.Name(), " ", s.name, keys))
		s.log.mu.Unlock()
	}
	if delay == 0 || renews {
		return s.Puppet.Run(ctx, x, keys, args)
	}
	type answer struct {
		reply driver.Reply
		err   error
	}
	done := make(chan answer, 1)
	time.AfterFunc(delay, func() {
		reply, err := s.Puppet.Run(context.WithoutCancel(ctx), x, keys, args)
		done <- answer{reply, err}
	})
	select {
	case a := <-done:
		return a.reply, a.err
	case <-ctx.Done():
	case <-time.After(s.Traits().Timeout):
	}
	return driver.Reply{}, &driver.RunError{Outcome: driver.Unknown, Err: errors.New("no answer in time")}
}

// Traits are those of a driver whose servers may be slow.
func (s *server) Traits() driver.Traits {
	t := s.Puppet.Traits()
	t.Timeout = 5 * time.Second
	return t
}

// A client has its locks on a server of its own.
type client struct {
	*lock.Locks
	*server
	clock   *renew.Clock
	dropped holdctx.Dropped
	leave   func() // ends it as Close does
}

func connect(t *testing.T, n int, s *server) *client {
	t.Helper()
	c := &client{server: s}
	to, err := request.New(request.Options{Driver: s, Outage: 10 * time.Second, Length: watchdog, Classic: true, RenewFailed: func(int, error) {}, Public: func(fact error) error { return fact }})
	if err != nil {
		t.Fatal(err)
	}
	c.clock = renew.NewClock(to.Go, c.dropped.GiveUp)
	to.Answered = c.clock.Answered
	c.Locks = lock.New(term.Options{
		Server: to, Clock: c.clock, Unseen: &handoff.UnseenPauses{Server: to}, Dropped: &c.dropped, Twins: &nameclash.Names{},
		ID: fmt.Sprintf("0f8fad5b-d9cb-869f-a165-7086772895%02d", n), Watchdog: watchdog, SlowWait: time.Second, HandOff: true,
		Agreed: term.Agreed{Codec: "StringCodec"},
		Events: term.Events{
			Lost: func(claim.Loss) {}, ReleaseFailed: func(string, string, error) {},
			SlowWait: func(string, time.Duration, callsite.Site, callsite.Site) {}, Requeued: func(string, string, time.Duration) {},
			Dropped: func(string, callsite.Site) {}, Refused: func(string) {}, Inquire: func(string, string) {}, First: func() {},
		},
	})
	c.leave = sync.OnceFunc(func() {
		to.Leave()
		c.Drain(time.Second)
		for _, h := range c.clock.Close() {
			h.(interface{ Close() }).Close()
		}
		c.Close()
		to.Orphans.Close()
		to.End(time.Second)
	})
	return c
}

// world runs f with n clients, which have to have let go of everything then.
func world(t *testing.T, n int, f func(t *testing.T, cs []*client, l *log)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(time.Minute) // until the last slow answer
		var l log
		cs := make([]*client, n)
		for i := range cs {
			cs[i] = connect(t, i, &server{Puppet: puppet.New(), name: string(rune('A' + i)), log: &l})
			defer cs[i].leave()
		}
		f(t, cs, &l)
		if t.Failed() {
			return
		}
		ctx, end := context.WithTimeout(t.Context(), 5*time.Minute)
		defer end()
		for _, c := range cs {
			if err := c.AwaitReleases(ctx); err != nil && !errors.Is(err, request.ErrClosed) {
				t.Errorf("a place is left behind: %v", err)
			}
			for _, h := range c.clock.Holders() {
				t.Errorf("%v is left to be renewed", h)
			}
		}
	})
}

// members returns a lock of this name of each client.
func members(name string, cs ...*client) []*lock.Spec {
	all := make([]*lock.Spec, len(cs))
	for i, c := range cs {
		l := c.Plain(name)
		all[i] = &l
	}
	return all
}

// leased has all locks wanted with a lease.
func leased(d time.Duration, locks []*lock.Spec) []*lock.Spec {
	for _, l := range locks {
		l.Want(term.Wish{Lease: d, HasLease: true}, nil)
	}
	return locks
}

func all(t *testing.T, locks ...*lock.Spec) *Spec {
	t.Helper()
	m, err := All("all", locks)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func majority(t *testing.T, locks ...*lock.Spec) *Spec {
	t.Helper()
	m, err := Majority("red", locks)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// acquire acquires with a context that lasts for no longer than that.
func acquire(ctx context.Context, t *testing.T, m *Spec) *Hold {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, time.Hour)
	defer cancel()
	g, err := m.Acquire(ctx, term.Params{})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func release(t *testing.T, g *Hold) {
	t.Helper()
	if err := g.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// free fails the test unless nobody has the lock at these clients.
func free(t *testing.T, name string, cs ...*client) {
	t.Helper()
	synctest.Wait()
	for _, c := range cs {
		if got := c.Owners(name); len(got) != 0 {
			t.Errorf("at %s %v have lock %q", c.server.name, got, name)
		}
	}
}

// had fails the test unless a hold's members have the lock at so many clients.
func had(t *testing.T, g *Hold, name string, n int, cs ...*client) {
	t.Helper()
	synctest.Wait()
	var ids []string
	for _, h := range g.Holds() {
		ids = append(ids, h.ID())
	}
	got := 0
	for _, c := range cs {
		if o := c.Owners(name); len(o) == 1 && slices.Contains(ids, o[0]) {
			got++
		}
	}
	if got != n {
		t.Errorf("the hold has lock %q at %d clients, want %d", name, got, n)
	}
}

// busyWith fails the test unless err says that a stranger has the lock.
func busyWith(t *testing.T, err error, name string) {
	t.Helper()
	var busy fact.Busy
	if !errors.As(err, &busy) || busy.Name != name || busy.Owner != puppet.Stranger {
		t.Errorf("%v, %+v; want that a stranger has %q", err, busy, name)
	}
}

// got returns what comes within minutes.
func got[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(time.Hour):
		t.Fatal("nothing happens")
		panic("unreachable")
	}
}

func under(g *Hold) context.Context { return holdctx.New(g.End(), g, nil) }

// A listener is told of ends.
type listener chan holdctx.End

func (l listener) Released(how holdctx.End, _ time.Time, _ error) { l <- how }
func (l listener) Ended(how holdctx.End, _ time.Time, _ error)    { l <- how }

// want fails the test unless it was told exactly that since the last call.
func (l listener) want(t *testing.T, want ...holdctx.End) {
	t.Helper()
	synctest.Wait()
	var told []holdctx.End
	for len(l) > 0 {
		told = append(told, <-l)
	}
	if !slices.Equal(told, want) {
		t.Errorf("told %v, want %v", told, want)
	}
}
