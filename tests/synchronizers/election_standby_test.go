package synchronizers

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/election"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/observe"
	"github.com/redlatch/redlatch/tests/internal/drivers"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// leadsNot fails if the candidate leads within d.
func (c *candidate) leadsNot(w *locktest.World, d time.Duration) {
	w.Helper()
	select {
	case <-c.terms:
		w.Fatal("it leads")
	case <-time.After(d):
	}
}

// leadsAfter fails unless the candidate begins to lead within so short a time from
// now.
func (c *candidate) leadsAfter(w *locktest.World, least, most time.Duration) context.Context {
	w.Helper()
	start := time.Now()
	lead := <-c.terms
	if took := time.Since(start); took < least || took > most {
		w.Errorf("it leads after %v; want %v to %v", took, least, most)
	}
	return lead
}

// When all begin, the better one may come later by less than the standby.
func TestABetterCandidateThatBeginsLaterLeadsFirst(t *testing.T) {
	locktest.WithSeeds(t, 20, func(w *locktest.World, _ uint64) {
		worse := stand(w, redlatch.Config{}, nil, election.Standby(5*time.Second))
		least := stand(w, redlatch.Config{}, nil, election.Standby(10*time.Second))
		worse.leadsNot(w, 4*time.Second)
		better := stand(w, redlatch.Config{}, nil)
		better.leadsAfter(w, 0, 10*time.Millisecond)
		worse.leadsNot(w, time.Minute)
		better.end(w)
		worse.leadsAfter(w, 5*time.Second, 5*time.Second+10*time.Millisecond)
		least.leadsNot(w, time.Minute)
		worse.end(w)
		least.leadsAfter(w, 10*time.Second, 10*time.Second+10*time.Millisecond)
		least.end(w)
	})
}

// A leader dies, and nobody is told: those that wait notice it at different times.
func TestABetterCandidateFollowsADeadLeader(t *testing.T) {
	locktest.WithSeeds(t, 20, func(w *locktest.World, seed uint64) {
		first := stand(w, redlatch.Config{}, nil)
		<-first.terms
		worse := stand(w, redlatch.Config{}, nil, election.Standby(5*time.Second))
		better := stand(w, redlatch.Config{}, nil)
		worse.leadsNot(w, time.Minute+time.Duration(seed)*313*time.Millisecond)
		w.OK(first.client.Close()) // which frees nothing, as a rule: a leader may return just in time
		w.WantErr(<-first.ended, redlatch.ErrClosed)
		better.leadsAfter(w, 0, 33*time.Second)
		w.OK(better.client.Close())
		w.WantErr(<-better.ended, redlatch.ErrClosed)
		worse.leadsAfter(w, 5*time.Second, 33*time.Second+5*time.Second)
		worse.end(w)
	})
}

// With candidates in standby only, nobody waits for ever for a better one, and one
// leads at a time.
func TestSomebodyLeadsWhenAllStandBy(t *testing.T) {
	locktest.WithSeeds(t, 3, func(w *locktest.World, _ uint64) {
		var all []*candidate
		var leading, most atomic.Int32
		ctx, stop := context.WithTimeout(bg, time.Hour)
		defer stop()
		terms := 0
		for range 3 {
			c := election.New(w.Client(redlatch.Config{}), name, election.Standby(5*time.Second))
			all = append(all, &candidate{ended: locktest.Later(func() error {
				return c.Run(ctx, func(ctx context.Context, _ int64) error {
					most.Store(max(most.Load(), leading.Add(1)))
					defer leading.Add(-1)
					terms++ // by one at a time
					select {
					case <-ctx.Done():
					case <-time.After(time.Minute):
					}
					return nil
				})
			})})
		}
		for _, c := range all {
			w.WantErr(<-c.ended, context.DeadlineExceeded)
		}
		if most.Load() != 1 || terms < 48 || terms > 56 { // one in 65 to 73 s
			t.Errorf("%d led at a time, in %d terms", most.Load(), terms)
		}
	})
}

// The leadership was taken and given up between two looks: it was not free for as
// long as it seems.
func TestATermBetweenTwoLooksBeginsAStandbyAnew(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		worse := stand(w, redlatch.Config{}, nil, election.Standby(time.Minute))
		worse.leadsNot(w, 20*time.Second)
		better := stand(w, redlatch.Config{}, nil)
		<-better.terms
		w.OK(better.client.Close())
		w.WantErr(<-better.ended, redlatch.ErrClosed)
		worse.leadsNot(w, 55*time.Second) // its first minute is over after 40 s
		worse.leadsAfter(w, 0, time.Minute)
		worse.end(w)
	})
}

// A better one that comes later ends no term. A leader that knows of it resigns,
// and does not take the leadership back.
func TestALeaderThatStoodByHandsBackWhenItResigns(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		worse := stand(w, redlatch.Config{}, nil, election.Standby(5*time.Second))
		lead := worse.leadsAfter(w, 5*time.Second, 6*time.Second)
		waits := func() bool {
			all, err := admin.New(worse.client).Participants(bg, admin.Question{Names: []string{name}})
			w.OK(err)
			return slices.ContainsFunc(all.Clients, func(c admin.Participant) bool {
				return len(c.Waiting) > 0 && c.Identity.Labels["zone"] == "a"
			})
		}
		third := stand(w, redlatch.Config{Identity: redlatch.Identity{Labels: map[string]string{"zone": "a"}}}, nil, election.Standby(time.Minute))
		time.Sleep(time.Minute)
		if waits() {
			t.Error("one that stands by says that it waits")
		}
		third.end(w)
		better := stand(w, redlatch.Config{Identity: redlatch.Identity{Labels: map[string]string{"zone": "a"}}}, nil)
		better.leadsNot(w, 5*time.Minute)
		if !waits() {
			t.Error("the better one does not say that it waits")
		}
		if lead.Err() != nil {
			t.Fatal("a better candidate has ended a term")
		}
		if led, err := worse.Resign(bg); !led || err != nil {
			t.Errorf("Resign: %t, %v", led, err)
		}
		better.leadsAfter(w, 0, 10*time.Millisecond)
		worse.leadsNot(w, 5*time.Minute)
		better.end(w)
		worse.leadsAfter(w, 5*time.Second, 6*time.Second)
		worse.end(w)
	})
}

// Candidates of one process have the same precedence as those of several.
func TestACandidateStandsByForOneOfItsProcess(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		better := stand(w, redlatch.Config{}, nil)
		<-better.terms
		ctx, stop := context.WithCancel(bg)
		led := make(chan string, 10)
		run := func(who string, opts ...election.Option) <-chan error {
			return locktest.Later(func() error {
				return election.New(better.client, name, opts...).Run(ctx, func(ctx context.Context, _ int64) error {
					led <- who
					<-ctx.Done()
					return nil
				})
			})
		}
		worse := run("worse", election.Standby(5*time.Second))
		good := run("good")
		time.Sleep(time.Minute)
		better.end(w)
		if who := <-led; who != "good" {
			t.Errorf("%s leads", who)
		}
		time.Sleep(time.Minute)
		stop()
		w.WantErr(<-worse, context.Canceled)
		w.WantErr(<-good, context.Canceled)
		if len(led) > 0 {
			t.Errorf("%s leads, too", <-led)
		}
	})
}

// A candidate in standby asks no more often than one that waits.
func TestAStandbyCostsNoMoreThanWaiting(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		leader := stand(w, redlatch.Config{}, nil)
		<-leader.terms
		var asked [2]atomic.Int32
		var waiting []*candidate
		for i, opts := range [][]election.Option{nil, {election.Standby(time.Minute)}} {
			waiting = append(waiting, stand(w, redlatch.Config{}, func(_ string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
				asked[i].Add(1)
				return next()
			}, opts...))
		}
		time.Sleep(time.Minute)
		asked[0].Store(0)
		asked[1].Store(0)
		time.Sleep(10 * time.Minute)
		if waits, stands := asked[0].Load(), asked[1].Load(); stands > waits*11/10 || stands < 200 {
			t.Errorf("%d requests in standby, and %d of one that waits", stands, waits)
		}
		waiting[0].end(w)
		leader.end(w)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		asked[1].Store(0)
		time.Sleep(50 * time.Second)
		if n := asked[1].Load(); n > 1 { // the client may note who it is
			t.Errorf("%d requests while nobody leads", n)
		}
		<-waiting[1].terms
		waiting[1].end(w)
	})
}

// Who stands by goes on through an outage, and what it cannot do is seen: those
// who observe would hear of nothing else.
func TestAStandbyOutlastsAnOutageAndIsHeardOf(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var down atomic.Bool
		down.Store(true)
		c := stand(w, redlatch.Config{}, locktest.Failing(&down, locktest.ErrRefused), election.Standby(5*time.Second))
		var failed atomic.Int32
		observe.Add(c.client, observe.Hooks{AcquireEnd: func(_ context.Context, e observe.AcquireEndEvent) {
			if e.Outcome == observe.OutcomeUnavailable && e.Name == name && e.Kind == redlatch.KindFenced {
				failed.Add(1)
			}
		}})
		time.Sleep(10 * time.Minute)
		if n := failed.Load(); n < 10 {
			t.Errorf("%d failures were told in ten minutes", n)
		}
		down.Store(false)
		c.leadsAfter(w, 5*time.Second, 8*time.Second)
		c.end(w)
	})
}

// An option that is nil was a panic, and not an error as for a lock.
func TestAnElectionRefusesAnOptionThatIsNil(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		for _, e := range []*election.Candidate{
			election.New(c, name, nil),
			election.New(c, name, election.Standby(time.Second), nil, election.Standby(0)),
		} {
			w.WantErr(e.Run(bg, func(context.Context, int64) error { panic("it leads") }), redlatch.ErrInvalid)
			_, err := e.Resign(bg)
			w.WantErr(err, redlatch.ErrInvalid)
			_, err = e.Leader(bg)
			w.WantErr(err, redlatch.ErrInvalid)
			for _, err := range e.Observe(bg) {
				w.WantErr(err, redlatch.ErrInvalid)
			}
			if _, leading := e.Leading(); leading || e.Name() != name {
				t.Errorf("%q leads: %v", e.Name(), leading)
			}
		}
	})
}

func TestAStandbyEndsWithItsClient(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		leader := stand(w, redlatch.Config{}, nil)
		<-leader.terms
		c := stand(w, redlatch.Config{}, nil, election.Standby(5*time.Second))
		time.Sleep(time.Minute)
		w.OK(c.client.Shutdown(bg))
		w.WantErr(<-c.ended, redlatch.ErrClosed)
		leader.end(w)
		for _, e := range []*election.Candidate{
			election.New(w.Client(redlatch.Config{}), name, election.Standby(-time.Second)),
			election.New(w.Client(redlatch.Config{}), "", election.Standby(time.Second)),
		} {
			w.WantErr(e.Run(bg, func(context.Context, int64) error { panic("it leads") }), redlatch.ErrInvalid)
		}
		w.OK(w.Server.Set(name, "no lock"))
		err := election.New(w.Client(redlatch.Config{}), name, election.Standby(time.Second)).Run(bg, func(context.Context, int64) error { panic("it leads") })
		if re := driver.Failure(err); re == nil || re.Code != "WRONGTYPE" {
			t.Errorf("Run: %v", err)
		}
	})
}

// A leader that is cut off is not ready any more when its context ends, whatever
// its function does.
func TestLeadingIsTrueWhileTheLeadersContextLives(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var cut atomic.Bool
		c := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: locktest.Failing(&cut, locktest.ErrReplyLost)})
		e := election.New(c, name)
		leads := func(want int64, standing map[string]bool) {
			t.Helper()
			// Another Candidate of the same name is the same.
			if number, is := election.New(c, name).Leading(); number != want || is != (want != 0) {
				t.Errorf("Leading: %d, %t; want %d", number, is, want)
			}
			if got := election.Standing(c); !maps.Equal(got, standing) {
				t.Errorf("Standing: %v; want %v", got, standing)
			}
		}
		leads(0, map[string]bool{})
		other := stand(w, redlatch.Config{}, nil)
		<-other.terms
		ctx, stop := context.WithCancel(bg)
		began, slow := make(chan context.Context), make(chan struct{})
		ended := locktest.Later(func() error {
			return e.Run(ctx, func(ctx context.Context, number int64) error {
				if n, is := e.Leading(); n != number || !is {
					t.Errorf("under the leader's context: %d, %t; want %d", n, is, number)
				}
				began <- ctx
				<-slow
				return nil
			})
		})
		time.Sleep(time.Minute)
		leads(0, map[string]bool{name: false})
		if _, is := other.Leading(); !is {
			t.Error("the other one does not lead")
		}
		other.end(w)
		lead := <-began
		leads(term(lead), map[string]bool{name: true})
		cut.Store(true)
		for lead.Err() == nil {
			leads(term(lead), map[string]bool{name: true})
			time.Sleep(100 * time.Millisecond)
		}
		leads(0, map[string]bool{name: false})
		cut.Store(false)
		slow <- struct{}{}
		lead = <-began
		leads(term(lead), map[string]bool{name: true})
		if _, err := e.Resign(lead); err != nil { // which does not wait for the leader
			t.Error(err)
		}
		leads(0, map[string]bool{name: false})
		stop()
		close(slow)
		w.WantErr(<-ended, context.Canceled)
		leads(0, map[string]bool{})
		w.OK(c.Close())
		leads(0, map[string]bool{})
	})
}

func TestAPanicLeavesNobodyStanding(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		func() {
			defer func() { _ = recover() }()
			_ = election.New(c, name).Run(bg, func(context.Context, int64) error { panic("oh") })
		}()
		if all := election.Standing(c); len(all) > 0 {
			t.Errorf("Standing: %v", all)
		}
	})
}

// On real servers a leadership that is given up goes to the better candidate, and
// then, later, to the other one.
func TestStandbyOnRealServers(t *testing.T) {
	locktest.OnRealServers(t, func(t *testing.T, s *testserver.Server) {
		led := make(chan string, 10)
		ctx, stop := context.WithCancel(bg)
		defer stop()
		run := func(who string, opts ...election.Option) (c *redlatch.Client, end func()) {
			c = locktest.ClientOf(t, drivers.Goredis.Open(t, drivers.Single(s.Addr())), redlatch.Config{})
			ctx, stop := context.WithCancel(ctx)
			ended := locktest.Later(func() error {
				return election.New(c, name, opts...).Run(ctx, func(ctx context.Context, _ int64) error {
					led <- who
					<-ctx.Done()
					return nil
				})
			})
			return c, func() {
				stop()
				if err := <-ended; !errors.Is(err, context.Canceled) {
					t.Errorf("Run: %v", err)
				}
			}
		}
		watcher, first := run("first")
		order := []string{<-led}
		_, worse := run("worse", election.Standby(5*time.Second))
		client, better := run("better")
		if !locktest.Within(locktest.Generous, func() bool { return client.Stats().Waiters == 1 }) {
			t.Error("the better candidate does not wait")
		}
		first()
		order = append(order, <-led)
		better()
		freed := time.Now()
		order = append(order, <-led)
		if d := time.Since(freed); d < 4*time.Second {
			t.Errorf("it stood by for %v", d)
		}
		worse()
		if want := []string{"first", "better", "worse"}; !slices.Equal(order, want) {
			t.Errorf("they led in the order %q, want %q", order, want)
		}
		if l, err := election.New(watcher, name).Leader(bg); err != nil || l.Owner != "" {
			t.Errorf("Leader: %+v, %v", l, err)
		}
	})
}
