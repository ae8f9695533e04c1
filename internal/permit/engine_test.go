package permit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
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
	"github.com/redlatch/redlatch/internal/puppet"
	"github.com/redlatch/redlatch/internal/renew"
	"github.com/redlatch/redlatch/internal/request"
)

// The engine on a server in memory, in a time of its own. What the scripts do is
// tested in tests/, with servers.

const watchdog = 30 * time.Second

// A stock is a puppet that has permits. It counts them as the scripts do, but for
// their TTLs and messages.
type stock struct {
	*puppet.Puppet

	mu      sync.Mutex
	numbers map[string]answered             // the last answers of sessions
	free    map[string]int                  // by semaphore
	given   map[string]map[string]time.Time // until when, by semaphore and id
	down    bool                            // nothing is answered, nor executed
	asked   int                             // requests for permits
}

// answered is the answer to the last request of a session.
type answered struct{ number, answer int64 }

func newStock() *stock {
	return &stock{Puppet: puppet.New(), numbers: map[string]answered{}, free: map[string]int{}, given: map[string]map[string]time.Time{}}
}

func number(n int64) driver.Reply { return driver.Reply{Kind: driver.ReplyInt, Int: n} }
func list(all ...driver.Reply) driver.Reply {
	return driver.Reply{Kind: driver.ReplyList, List: all}
}

func (s *stock) Run(_ context.Context, x *driver.Script, keys, args []string) (driver.Reply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return driver.Reply{}, &driver.RunError{Outcome: driver.NotExecuted, Err: errors.New("no connection")}
	}
	switch name := x.Name(); name {
	case "semaphore.read":
		return driver.Reply{Kind: driver.ReplyString, Str: strconv.Itoa(s.free[keys[0]])}, nil
	case "expirable.count":
		n := len(s.live(keys[0]))
		return list(driver.Reply{Kind: driver.ReplyString, Str: strconv.Itoa(s.free[keys[0]])}, number(int64(n))), nil
	case "expirable.take":
		return s.take(keys[0], args[1:]), nil
	case "expirable.release":
		return list(number(int64(s.back(keys[0], args[2:]))), number(0)), nil
	case "expirable.left", "expirable.renew":
		return s.times(name, keys, args), nil
	default:
		return s.counts(name, keys, args), nil
	}
}

// live returns until when permits are given, without those whose time is over,
// which are free.
func (s *stock) live(key string) map[string]time.Time {
	if s.given[key] == nil {
		s.given[key] = map[string]time.Time{}
	}
	for id, until := range s.given[key] {
		if !time.Now().Before(until) {
			delete(s.given[key], id)
			s.free[key]++
		}
	}
	return s.given[key]
}

func millis(text string) time.Duration {
	ms, _ := strconv.Atoi(text)
	return time.Duration(ms) * time.Millisecond
}

func (s *stock) take(key string, asks []string) driver.Reply {
	s.asked++
	if _, set := s.free[key]; !set {
		return list(number(-1), number(-1))
	}
	live, given := s.live(key), 0
	for len(asks) > 0 {
		n, _ := strconv.Atoi(asks[1])
		if n > s.free[key] {
			break
		}
		for _, id := range asks[2 : 2+n] {
			live[id] = time.Now().Add(millis(asks[0]))
		}
		s.free[key] -= n
		given, asks = given+1, asks[2+n:]
	}
	first := int64(-1)
	for _, until := range live {
		if left := time.Until(until).Milliseconds(); first < 0 || left < first {
			first = left
		}
	}
	return list(number(int64(given)), number(first))
}

// back frees permits, and returns how many of them were given.
func (s *stock) back(key string, ids []string) (n int) {
	live := s.live(key)
	for _, id := range ids {
		if _, there := live[id]; there {
			delete(live, id)
			s.free[key]++
			n++
		}
	}
	return n
}

func (s *stock) times(script string, keys, args []string) driver.Reply {
	var all []driver.Reply
	if script == "expirable.left" {
		live := s.live(name(keys[0]))
		for _, id := range args {
			left := int64(-2)
			if until, there := live[id]; there {
				left = time.Until(until).Milliseconds()
			}
			all = append(all, number(left))
		}
		return list(all...)
	}
	for i, key := range keys {
		live, id, until := s.live(name(key)), args[2*i], time.Now().Add(millis(args[2*i+1]))
		old, there := live[id]
		if there && until.After(old) {
			live[id] = until
		}
		if there {
			all = append(all, number(1))
		} else {
			all = append(all, number(0))
		}
	}
	return list(all...)
}

// name returns the semaphore of which a key says until when its permits are given.
func name(timeouts string) string {
	key, _, _ := strings.Cut(strings.TrimPrefix(timeouts, "{"), "}")
	return key
}

// counts executes a request of a session once.
func (s *stock) counts(script string, keys, args []string) driver.Reply {
	n, _ := strconv.ParseInt(strings.TrimPrefix(args[0], "-"), 10, 64)
	session := keys[len(keys)-1]
	if last := s.numbers[session]; last.number < n {
		s.numbers[session] = answered{n, s.count(script, keys[0], args[2:])}
	}
	last := s.numbers[session]
	return list(number(last.number), number(last.answer))
}

func (s *stock) count(script, key string, args []string) int64 {
	_, set := s.free[key]
	arg := func(i int) int { n, _ := strconv.Atoi(args[i]); return n }
	switch script {
	case "semaphore.exchange":
		s.asked++
		if !set && arg(1) == 0 {
			return -2147483648
		}
		s.free[key] += arg(1)
		given := int64(0)
		for i := 4; i < len(args) && arg(i) <= s.free[key]; i++ {
			s.free[key] -= arg(i)
			given++
		}
		return given
	case "semaphore.set", "expirable.try_set":
		if set {
			return 0
		}
		s.free[key] = arg(1)
	case "semaphore.add":
		if !set && arg(2) == 0 {
			return 0
		}
		s.free[key] += arg(1)
	case "expirable.add":
		s.free[key] += arg(1)
		return int64(s.free[key])
	case "expirable.set":
		s.free[key] = arg(1) - len(s.live(key))
	case "semaphore.drain":
		n := s.free[key]
		s.free[key] = 0
		return int64(n)
	case "semaphore.delete", "expirable.delete":
		if !set {
			return 0
		}
		delete(s.free, key)
		delete(s.given, key)
	case "expirable.give_back":
		done, bit := int64(0), int64(1)
		for at := 1; at < len(args); bit *= 2 {
			ids := args[at+1 : at+1+arg(at)]
			live := s.live(key)
			if !slices.ContainsFunc(ids, func(id string) bool { return live[id].IsZero() }) {
				s.back(key, ids)
				done += bit
			}
			at += 1 + len(ids)
		}
		return done
	}
	return 1
}

// with calls f while nobody asks the server.
func (s *stock) with(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// goDown says whether the server can be reached.
func (s *stock) goDown(down bool) { s.with(func() { s.down = down }) }

// forget takes permits away from whoever has them.
func (s *stock) forget(key string, ids ...string) { s.with(func() { s.back(key, ids) }) }

// want fails the test unless so many permits are free, and so many given.
func (s *stock) want(t *testing.T, key string, free, given int) {
	t.Helper()
	synctest.Wait()
	s.with(func() {
		if n := len(s.live(key)); s.free[key] != free || n != given {
			t.Errorf("of %q %d permits are free and %d given, want %d and %d", key, s.free[key], n, free, given)
		}
	})
}

// A client has semaphores, and notes its events.
type client struct {
	*Semaphores
	*stock
	leave func() // ends it as Close does

	events  sync.Mutex
	reports []string
}

func (c *client) report(text string) {
	c.events.Lock()
	defer c.events.Unlock()
	c.reports = append(c.reports, text)
}

// told returns the events since the last call.
func (c *client) told() []string {
	synctest.Wait()
	c.events.Lock()
	defer c.events.Unlock()
	all := c.reports
	c.reports = nil
	return all
}

// world runs f with a client, which has to have let go of everything then.
func world(t *testing.T, f func(t *testing.T, c *client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := &client{stock: newStock()}
		s, err := request.New(request.Options{Driver: c.stock, Outage: 10 * time.Second, Length: watchdog, Classic: true, RenewFailed: func(int, error) {}, Public: func(fact error) error { return fact }})
		if err != nil {
			t.Fatal(err)
		}
		var dropped holdctx.Dropped
		clock := renew.NewClock(s.Go, dropped.GiveUp)
		s.Answered = clock.Answered
		c.Semaphores = New(Options{
			Server: s, Client: "0f8fad5b-d9cb-869f-a165-70867728950e", Clock: clock, Dropped: &dropped, Unseen: &handoff.UnseenPauses{Server: s}, Local: true,
			Events: Events{
				Lost:          func(l claim.Loss) { c.report(fmt.Sprint("lost ", l.Name)) },
				ReleaseFailed: func(name, _ string, _ error) { c.report("release failed " + name) },
				Dropped:       func(name string, _ callsite.Site) { c.report("dropped " + name) },
			},
		})
		c.leave = sync.OnceFunc(func() {
			s.Leave()
			for _, h := range clock.Close() {
				h.(*Permit).Close()
			}
			c.Close()
			s.Orphans.Close()
			s.End(time.Second)
		})
		defer time.Sleep(time.Minute) // until what is in flight is over
		defer c.leave()
		f(t, c)
		if t.Failed() {
			return
		}
		ctx, end := context.WithTimeout(t.Context(), 5*time.Minute)
		defer end()
		if err := c.AwaitReleases(ctx); err != nil && !errors.Is(err, request.ErrClosed) {
			t.Errorf("something is left behind: %v", err)
		}
		for _, h := range clock.Holders() {
			t.Errorf("permit %s is left to be renewed", h.(*Permit).ID())
		}
	})
}

// expirable returns a semaphore that has n permits.
func (c *client) desks(t *testing.T, n int) *Expirable {
	t.Helper()
	s := c.Expirable("desks")
	if set, err := s.TrySet(t.Context(), n, nil); err != nil || !set {
		t.Fatal(set, err)
	}
	return &s
}

func take(t *testing.T, s *Expirable, want Want) []*Permit {
	t.Helper()
	want.N = max(want.N, 1)
	ps, err := s.Acquire(t.Context(), want)
	if err != nil {
		t.Fatal(err)
	}
	return ps
}

// at returns when something has happened that does within hours.
func at(t *testing.T, c <-chan time.Time) time.Time {
	t.Helper()
	select {
	case when := <-c:
		return when
	case <-time.After(5 * time.Hour):
		t.Fatal("it never happens")
		return time.Time{}
	}
}

// A listener notes the ends that it is told of.
type listener struct {
	mu   sync.Mutex
	told []holdctx.End
}

func (l *listener) Released(how holdctx.End, at time.Time, err error) { l.Ended(how, at, err) }

func (l *listener) Ended(how holdctx.End, _ time.Time, _ error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told = append(l.told, how)
}

func (l *listener) want(t *testing.T, want ...holdctx.End) {
	t.Helper()
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Equal(l.told, want) {
		t.Errorf("told %v, want %v", l.told, want)
	}
}

func TestAPermitIsKeptUntilItIsReleased(t *testing.T) {
	world(t, func(t *testing.T, c *client) {
		s := c.desks(t, 2)
		p := take(t, s, Want{Note: "first"})[0]
		var o listener
		p.Observe(&o)
		c.want(t, "desks", 1, 1)
		if p.Name() != "desks" || len(p.ID()) != 32 || p.Token() != 0 || !p.Kept() || s.Live(p.id) != p || s.Live("none") != nil {
			t.Errorf("the permit is %s of %q, kept: %v", p.ID(), p.Name(), p.Kept())
		}
		time.Sleep(3 * watchdog) // renewed meanwhile
		c.want(t, "desks", 1, 1)
		if err := p.SetNote("second"); err != nil || p.Err() != nil || !p.Expires().After(time.Now()) {
			t.Errorf("%v, %v until %v", err, p.Err(), p.Expires())
		}
		var claims []claim.Claim
		c.Claims(func(is claim.Claim, _ context.Context) bool { claims = append(claims, is); return true })
		if len(claims) != 1 || claims[0].Owner != p.ID() || claims[0].Note != "second" || !claims[0].Renewed {
			t.Errorf("it is shown as %+v", claims)
		}
		if ids := holdctx.OwnersAbove(holdctx.New(p.End(), p, nil)); !slices.Equal(ids, []string{p.ID()}) {
			t.Errorf("its context descends from %v", ids)
		}
		end := p.End()
		if err := p.Release(t.Context()); err != nil {
			t.Error(err)
		}
		c.want(t, "desks", 2, 0)
		o.want(t, holdctx.EndReleased)
		if err := p.Release(t.Context()); !errors.Is(err, holdctx.ErrReleased) || !errors.Is(context.Cause(end), holdctx.ErrReleased) || !p.Expires().IsZero() {
			t.Errorf("a second release: %v; the context ended for %v", err, context.Cause(end))
		}
		if err := p.SetNote("third"); !errors.Is(err, holdctx.ErrReleased) || s.Live(p.id) != nil {
			t.Errorf("after its release: %v", err)
		}
	})
}

// A permit ends by the clock when its lease is over, or MaxHold, or nothing is
// renewed; and when the server says that it has it no more.
func TestAPermitIsLostInTime(t *testing.T) {
	for how, x := range map[holdctx.Reason]struct {
		want  Want
		spoil func(c *client, p *Permit)
		after time.Duration // it ends, at the latest
	}{
		holdctx.Lease:   {Want{Lease: time.Minute, HasLease: true}, func(*client, *Permit) {}, time.Minute},
		holdctx.MaxHold: {Want{MaxHold: time.Hour}, func(*client, *Permit) {}, time.Hour},
		holdctx.Expired: {Want{}, func(c *client, _ *Permit) { c.goDown(true) }, watchdog},
		holdctx.Gone:    {Want{}, func(c *client, p *Permit) { c.forget("desks", p.id) }, watchdog / 2},
	} {
		world(t, func(t *testing.T, c *client) {
			s := c.desks(t, 1)
			p := take(t, s, x.want)[0]
			var o listener
			p.Observe(&o)
			lost := make(chan time.Time, 1)
			context.AfterFunc(p.End(), func() { lost <- time.Now() })
			start := time.Now()
			x.spoil(c, p)
			if took := at(t, lost).Sub(start); took > x.after || took < x.after/4 {
				t.Errorf("%s: lost after %v, want %v at the latest", how, took, x.after)
			}
			if err := p.Err(); !errors.Is(err, holdctx.ErrLost) || !strings.Contains(err.Error(), string(how)) || !errors.Is(context.Cause(p.End()), holdctx.ErrLost) {
				t.Errorf("%s: %v", how, err)
			}
			if got := c.told(); !slices.Equal(got, []string{"lost desks"}) {
				t.Errorf("%s: events %q", how, got)
			}
			o.want(t, holdctx.EndLost)
			c.goDown(false)
			if err := p.Release(t.Context()); !errors.Is(err, holdctx.ErrLost) {
				t.Errorf("%s: its release: %v", how, err)
			}
			c.want(t, "desks", 1, 0)
		})
	}
}

// Its caller does not wait for the answer: only an event tells of it.
func TestALossIsToldThatAReleaseFindsAfterItsContext(t *testing.T) {
	world(t, func(t *testing.T, c *client) {
		s := c.desks(t, 3)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for _, n := range []int{1, 2} {
			ps := take(t, s, Want{N: n})
			c.forget("desks", idsOf(ps)...)
			if err := Together(ps).Release(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("the release of %d: %v", n, err)
			}
			if got, want := c.told(), slices.Repeat([]string{"lost desks"}, n); !slices.Equal(got, want) {
				t.Errorf("told %q, want %q", got, want)
			}
		}
		if err := take(t, s, Want{N: 1})[0].Release(ctx); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if got := c.told(); len(got) > 0 {
			t.Errorf("told %q of a permit that was not lost", got)
		}
		c.want(t, "desks", 3, 0)
	})
}

func TestWaitersGetPermitsInTurn(t *testing.T) {
	world(t, func(t *testing.T, c *client) {
		s := c.desks(t, 2)
		p := take(t, s, Want{N: 2, Lease: time.Minute, HasLease: true})
		var busy fact.Busy
		if _, err := s.Acquire(t.Context(), Want{N: 1, Once: true}); !errors.As(err, &busy) || busy.TTL <= 0 || busy.TTL > time.Minute+time.Second {
			t.Errorf("a try: %v, %+v", err, busy)
		}
		start := time.Now()
		if _, err := s.Acquire(t.Context(), Want{N: 1, Until: start.Add(5 * time.Second)}); !errors.As(err, &busy) || time.Since(start) != 5*time.Second {
			t.Errorf("a wait of 5 s, after %v: %v", time.Since(start), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if _, err := s.Acquire(ctx, Want{N: 1}); !errors.As(err, &busy) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the end of a context: %v", err)
		}
		order := make(chan int, 3)
		for i := range 3 {
			go func() {
				ps, err := s.Acquire(t.Context(), Want{N: []int{2, 1, 1}[i]})
				order <- i
				if err != nil {
					t.Error(err)
					return
				}
				time.Sleep(time.Second)
				if err := Together(ps).Release(context.Background()); err != nil {
					t.Error(err)
				}
			}()
			synctest.Wait()
		}
		waits := 0
		c.Claims(func(_ claim.Claim, of context.Context) bool {
			if of != nil {
				waits++
			}
			return true
		})
		if waits != 3 {
			t.Errorf("%d callers are shown to wait", waits)
		}
		if err := Together(p).Release(t.Context()); err != nil {
			t.Error(err)
		}
		if first := <-order; first != 0 {
			t.Errorf("caller %d is the first, before one that came earlier and wants more", first)
		}
		<-order
		<-order
		time.Sleep(time.Minute)
		c.want(t, "desks", 2, 0)
	})
}

func TestAPermitIsExtendedAndDetached(t *testing.T) {
	world(t, func(t *testing.T, c *client) {
		s := c.desks(t, 3)
		p := take(t, s, Want{Lease: time.Minute, HasLease: true})[0]
		if err := p.Extend(t.Context(), time.Hour); err != nil || time.Until(p.Expires()) < 58*time.Minute {
			t.Errorf("extended until %v: %v", p.Expires(), err)
		}
		var o listener
		p.Observe(&o)
		if err := p.Detach(); err != nil || p.Err() != nil || p.End().Err() != nil || s.Live(p.id) != nil {
			t.Errorf("detached: %v, %v", err, p.Err())
		}
		o.want(t, holdctx.EndDetached)
		if err := p.SetNote("nobody reads it"); !errors.Is(err, holdctx.ErrDetached) {
			t.Errorf("a note: %v", err)
		}
		if err := p.Extend(t.Context(), 2*time.Hour); err != nil {
			t.Error(err)
		}
		if left, err := s.Left(t.Context(), p.id); err != nil || left < time.Hour {
			t.Errorf("by its id %v are left: %v", left, err)
		}
		time.Sleep(3 * time.Hour) // the lease is over, and nobody is told
		if p.Err() != nil || p.End().Err() != nil {
			t.Errorf("it is over here: %v", p.Err())
		}
		if err := p.Extend(t.Context(), time.Hour); !errors.Is(err, holdctx.ErrNotHeld) {
			t.Errorf("extended although it is over: %v", err)
		}
		if err := p.Release(t.Context()); !errors.Is(err, holdctx.ErrNotHeld) || !errors.Is(p.Err(), holdctx.ErrReleased) {
			t.Errorf("released although it is over: %v, %v", err, p.Err())
		}
		if err := p.Detach(); !errors.Is(err, holdctx.ErrReleased) {
			t.Errorf("detached after its release: %v", err)
		}

		p = take(t, s, Want{Lease: time.Minute, HasLease: true})[0]
		c.forget("desks", p.id)
		if err := p.Extend(t.Context(), time.Hour); !errors.Is(err, holdctx.ErrLost) {
			t.Errorf("extended although the server has it no more: %v", err)
		}
		c.told()
		p = take(t, s, Want{})[0]
		c.forget("desks", p.id)
		if err := p.Release(t.Context()); !errors.Is(err, holdctx.ErrLost) {
			t.Errorf("released although the server has it no more: %v", err)
		}
		if got := c.told(); !slices.Equal(got, []string{"lost desks"}) {
			t.Errorf("events %q", got)
		}
	})
}

// By their ids permits are released by anybody, all of them or none.
func TestPermitsAreReleasedByTheirIDs(t *testing.T) {
	world(t, func(t *testing.T, c *client) {
		s := c.desks(t, 3)
		ps := take(t, s, Want{N: 3})
		ids := idsOf(ps)
		if err := s.Release(t.Context(), []string{ids[0], "none"}); !errors.Is(err, holdctx.ErrNotHeld) || ps[0].Err() != nil {
			t.Errorf("released, with one that is none: %v, %v", err, ps[0].Err())
		}
		var o listener
		ps[0].Observe(&o)
		if err := s.Release(t.Context(), ids[:2]); err != nil || !errors.Is(ps[0].Err(), holdctx.ErrReleased) || ps[2].Err() != nil {
			t.Errorf("released: %v, %v, %v", err, ps[0].Err(), ps[2].Err())
		}
		o.want(t, holdctx.EndReleased)
		c.want(t, "desks", 2, 1)
		if err := s.Extend(t.Context(), ids[0], time.Hour); !errors.Is(err, holdctx.ErrNotHeld) {
			t.Errorf("extended after its release: %v", err)
		}
		if _, err := s.Left(t.Context(), ids[0]); !errors.Is(err, holdctx.ErrNotHeld) {
			t.Errorf("left after its release: %v", err)
		}
		if free, given, err := s.Count(t.Context()); free != 2 || given != 1 || err != nil {
			t.Errorf("%d are free, %d given: %v", free, given, err)
		}
		if err := errors.Join(s.Add(t.Context(), 2), s.Set(t.Context(), 4)); err != nil {
			t.Error(err)
		}
		c.want(t, "desks", 3, 1)
		if there, err := s.Lives(t.Context(), "1000"); !there || err != nil {
			t.Error(there, err)
		}
		if deleted, err := s.Delete(t.Context()); !deleted || err != nil {
			t.Error(deleted, err)
		}
		synctest.Wait()
		if !errors.Is(ps[2].Err(), holdctx.ErrLost) {
			t.Errorf("the semaphore is deleted, its permit: %v", ps[2].Err())
		}
	})
}

// The first one in line who has brought permits gives them to a semaphore that has
// none.
func TestASemaphoreIsSetUpByWhoeverBringsPermits(t *testing.T) {
	world(t, func(t *testing.T, c *client) {
		s := c.Expirable("desks")
		if _, err := s.Acquire(t.Context(), Want{N: 1}); !errors.Is(err, fact.ErrUninitialized) {
			t.Errorf("a semaphore without permits: %v", err)
		}
		p := take(t, &s, Want{Permits: 3})[0]
		c.want(t, "desks", 2, 1)
		if err := p.Release(t.Context()); err != nil {
			t.Error(err)
		}

		x := c.Counted("slots", 0)
		if _, err := x.Acquire(t.Context(), 1, false, time.Time{}, 0); !errors.Is(err, fact.ErrUninitialized) {
			t.Errorf("a counted one: %v", err)
		}
		x = c.Counted("slots", 3)
		if _, err := x.Acquire(t.Context(), 1, false, time.Time{}, 0); err != nil {
			t.Error(err)
		}
		c.want(t, "slots", 2, 0)
		if err := x.Release(t.Context(), 1); err != nil {
			t.Error(err)
		}
		c.want(t, "slots", 3, 0)
	})
}

// While the server is away, callers fail when that has lasted for long, and the
// worker goes on for those who are left.
func TestAnOutageEndsTheWaitAndLosesNoPermit(t *testing.T) {
	world(t, func(t *testing.T, c *client) {
		s, x := c.desks(t, 1), c.Counted("slots", 2)
		if _, err := x.Acquire(t.Context(), 1, false, time.Time{}, 0); err != nil {
			t.Fatal(err)
		}
		c.goDown(true)
		start := time.Now()
		if _, err := s.Acquire(t.Context(), Want{N: 1}); !errors.Is(err, request.ErrUnavailable) || time.Since(start) > 20*time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		start = time.Now()
		if _, err := x.Acquire(t.Context(), 2, false, time.Time{}, 0); !errors.Is(err, request.ErrUnavailable) || time.Since(start) > 20*time.Second {
			t.Errorf("a counted one, after %v: %v", time.Since(start), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := x.Release(ctx, 1); err == nil {
			t.Error("a release that nobody has answered")
		}
		c.goDown(false)
		time.Sleep(time.Minute)
		c.want(t, "slots", 2, 0)
		c.want(t, "desks", 1, 0)
	})
}

func TestCountedPermitsPassInsideTheProcess(t *testing.T) {
	world(t, func(t *testing.T, c *client) {
		s := c.Counted("slots", 1)
		acquire := func(n int) (bool, error) { return s.Acquire(t.Context(), n, false, time.Time{}, 0) }
		if passed, err := acquire(1); passed || err != nil {
			t.Fatal(passed, err)
		}
		got := make(chan bool)
		go func() {
			passed, err := acquire(1)
			if err != nil {
				t.Error(err)
			}
			got <- passed
		}()
		synctest.Wait()
		if err := s.Release(t.Context(), 1); err != nil {
			t.Error(err)
		}
		if !<-got {
			t.Error("the permit did not pass to the next caller")
		}
		var busy fact.Busy
		if _, err := s.Acquire(t.Context(), 1, true, time.Time{}, 0); !errors.As(err, &busy) {
			t.Errorf("a try: %v", err)
		}
		start := time.Now()
		if _, err := s.Acquire(t.Context(), 1, false, start.Add(5*time.Second), 0); !errors.As(err, &busy) || time.Since(start) != 5*time.Second {
			t.Errorf("a wait of 5 s, after %v: %v", time.Since(start), err)
		}
		c.want(t, "slots", 0, 0)
		if err := s.Release(t.Context(), 1); err != nil {
			t.Error(err)
		}
		c.want(t, "slots", 1, 0)

		for what, err := range map[string]error{
			"Add": func() error { _, err := s.Add(t.Context(), 2, false); return err }(),
			"Set": func() error { _, err := s.Set(t.Context(), 9, 0); return err }(),
		} {
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		if n, err := s.Available(t.Context()); n != 3 || err != nil {
			t.Errorf("%d are available: %v", n, err)
		}
		if n, err := s.Drain(t.Context()); n != 3 || err != nil {
			t.Errorf("%d were drained: %v", n, err)
		}
		if there, err := s.Lives(t.Context(), "0"); !there || err != nil {
			t.Error(there, err)
		}
		if deleted, err := s.Delete(t.Context()); !deleted || err != nil {
			t.Error(deleted, err)
		}
	})
}

// However callers come, leave and release, no permit is had twice, and none is
// lost.
func TestCountedPermitsAreNeitherDoubledNorLost(t *testing.T) {
	world(t, func(t *testing.T, c *client) {
		s := c.Counted("slots", 4)
		var mu sync.Mutex
		var wg sync.WaitGroup
		inside, most := 0, 0
		for i := range 60 {
			wg.Go(func() {
				n := 1 + i%3
				var until time.Time
				if i%4 == 0 {
					until = time.Now().Add(time.Duration(i) * time.Millisecond)
				}
				time.Sleep(time.Duration(i*7%13) * time.Millisecond)
				if _, err := s.Acquire(t.Context(), n, i%10 == 9, until, 0); err != nil {
					if !errors.As(err, &fact.Busy{}) {
						t.Error(err)
					}
					return
				}
				mu.Lock()
				inside += n
				most = max(most, inside)
				mu.Unlock()
				time.Sleep(5 * time.Millisecond)
				mu.Lock()
				inside -= n
				mu.Unlock()
				if err := s.Release(t.Context(), n); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if most != 4 {
			t.Errorf("%d of 4 permits were had at a time", most)
		}
		time.Sleep(time.Minute)
		c.want(t, "slots", 4, 0)
	})
}

func TestAShutdownWaitsForSections(t *testing.T) {
	world(t, func(t *testing.T, c *client) {
		s := c.Counted("slots", 1)
		x := s.Begin(1)
		if _, err := s.Acquire(t.Context(), 1, false, time.Time{}, 0); err != nil {
			t.Fatal(err)
		}
		ctx := x.With(t.Context())
		soon, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := c.AwaitReleases(soon); !errors.Is(err, context.DeadlineExceeded) || c.Sections() != 1 {
			t.Errorf("nobody waits for %d section: %v", c.Sections(), err)
		}
		c.Server.Calm.End()
		synctest.Wait()
		if !errors.Is(context.Cause(ctx), request.ErrClosed) {
			t.Errorf("the section's context: %v", context.Cause(ctx))
		}
		if err := x.Release(t.Context()); err != nil {
			t.Error(err)
		}
		x.End()
		c.want(t, "slots", 1, 0)
	})
}

func TestDroppedPermitsAreReleased(t *testing.T) {
	world(t, func(t *testing.T, c *client) {
		s := c.desks(t, 3)
		var o listener
		ps := take(t, s, Want{N: 2})
		ps[0].Observe(&o)
		Together(ps).Dropped()
		c.Dropped.GiveUp()
		over := take(t, s, Want{})[0]
		if err := over.Release(t.Context()); err != nil {
			t.Error(err)
		}
		over.Dropped() // after its release that is nothing
		take(t, s, Want{})[0].Dropped()
		c.Dropped.GiveUp()
		c.want(t, "desks", 3, 0)
		if got := c.told(); !slices.Equal(got, []string{"dropped desks", "dropped desks"}) {
			t.Errorf("events %q", got)
		}
		o.want(t, holdctx.EndDropped)
	})
}

// Close ends what callers wait for and what they have, and leaves that to its
// lease: a section may still run.
func TestCloseLeavesPermitsToTheirLeases(t *testing.T) {
	world(t, func(t *testing.T, c *client) {
		s := c.desks(t, 1)
		p := take(t, s, Want{})[0]
		var o listener
		p.Observe(&o)
		p.EndContext()
		if !errors.Is(context.Cause(p.End()), request.ErrClosed) || p.Err() != nil {
			t.Errorf("its context: %v, the permit: %v", context.Cause(p.End()), p.Err())
		}
		waits := make(chan error)
		go func() {
			_, err := s.Acquire(t.Context(), Want{N: 1})
			waits <- err
		}()
		synctest.Wait()
		c.leave()
		if err := <-waits; !errors.Is(err, request.ErrClosed) {
			t.Errorf("the wait ended with %v", err)
		}
		c.stock.want(t, "desks", 0, 1)
		o.want(t, holdctx.EndClosed)
		if err := p.Release(t.Context()); !errors.Is(err, request.ErrClosed) {
			t.Errorf("its release: %v", err)
		}
		if _, err := s.Acquire(t.Context(), Want{N: 1}); !errors.Is(err, request.ErrClosed) {
			t.Errorf("a call after that: %v", err)
		}
		time.Sleep(watchdog)
		c.stock.want(t, "desks", 1, 0)
	})
}

func TestSeveralPermitsAreOne(t *testing.T) {
	world(t, func(t *testing.T, c *client) {
		s := c.desks(t, 3)
		x := Together(take(t, s, Want{N: 3, Lease: time.Minute, HasLease: true}))
		if x.Name() != "desks" || x.Kept() || len(x.Permits()) != 3 || x.Err() != nil || !x.Expires().After(time.Now()) {
			t.Errorf("they are of %q, kept: %v, over: %v", x.Name(), x.Kept(), x.Err())
		}
		if err := errors.Join(x.SetNote("all"), x.Extend(t.Context(), time.Hour)); err != nil || time.Until(x.Expires()) < 58*time.Minute {
			t.Errorf("until %v: %v", x.Expires(), err)
		}
		ctx := holdctx.New(x.End(), x, nil)
		if ids := holdctx.OwnersAbove(ctx); len(ids) != 3 || ctx.Value("anything") != nil || ctx.Value(holdctx.Doubt{}) != true {
			t.Errorf("a context of them descends from %v", ids)
		}
		if err := x.Permits()[0].Detach(); err != nil {
			t.Error(err)
		}
		if err := x.SetNote("those that are left"); err != nil {
			t.Error(err)
		}
		if err := x.Release(t.Context()); err != nil {
			t.Error(err)
		}
		c.want(t, "desks", 3, 0)
		if err := x.Release(t.Context()); !errors.Is(err, holdctx.ErrReleased) || !errors.Is(context.Cause(x.End()), holdctx.ErrReleased) {
			t.Errorf("a second release: %v", err)
		}
		if err := x.SetNote("late"); !errors.Is(err, holdctx.ErrReleased) || !x.Expires().IsZero() {
			t.Errorf("a note after that: %v", err)
		}
	})
}

// The first loss ends all as one. It is told by one release, and stays what Err
// says, also when the others have been released.
func TestTheLossOfOneOfSeveralStaysTheirError(t *testing.T) {
	for _, first := range []bool{true, false} { // asked for before the release, or not
		world(t, func(t *testing.T, c *client) {
			s := c.desks(t, 3)
			x := Together(take(t, s, Want{N: 3}))
			end := x.End()
			c.forget("desks", x.Permits()[2].id)
			time.Sleep(watchdog)
			if !errors.Is(context.Cause(end), holdctx.ErrLost) {
				t.Errorf("the context ended for %v", context.Cause(end))
			}
			if first && !errors.Is(x.Err(), holdctx.ErrLost) {
				t.Errorf("before the release: %v", x.Err())
			}
			if err := x.Release(t.Context()); !errors.Is(err, holdctx.ErrLost) {
				t.Errorf("the release: %v", err)
			}
			if err := x.Release(t.Context()); !errors.Is(err, holdctx.ErrReleased) || errors.Is(err, holdctx.ErrLost) {
				t.Errorf("a second release: %v", err)
			}
			if !errors.Is(x.Permits()[0].Err(), holdctx.ErrReleased) {
				t.Errorf("one that was not lost: %v", x.Permits()[0].Err())
			}
			if err := x.Err(); !errors.Is(err, holdctx.ErrLost) {
				t.Errorf("after the release: %v", err)
			}
			c.want(t, "desks", 3, 0)
		})
	}
}

// Nobody asks the server for each of many callers by itself.
func TestManyCallersShareRequests(t *testing.T) {
	world(t, func(t *testing.T, c *client) {
		s := c.desks(t, 100)
		c.goDown(true)
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				if _, err := s.Acquire(t.Context(), Want{N: 1, Lease: time.Second, HasLease: true}); err != nil {
					t.Error(err)
				}
			})
		}
		time.Sleep(2 * time.Second)
		c.goDown(false)
		wg.Wait()
		c.with(func() {
			if c.asked > 5 {
				t.Errorf("50 callers cost %d requests", c.asked)
			}
			if got := slices.Collect(maps.Keys(c.given["desks"])); len(got) != 50 {
				t.Errorf("%d are given", len(got))
			}
		})
		time.Sleep(time.Minute)
	})
}
