package campaign

import (
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

const (
	deadAfter = time.Second            // for how long a primary is silent before another server takes its place, in a fault that is to have that
	calm      = 15 * time.Second       // the same, in all others: a busy machine is no fault
	missed    = 700 * time.Millisecond // what the replicas have not heard of when their primary is killed
	stays     = 5 * time.Second        // at most: for how long a primary goes on that is none any more

	attempts = 10 // to have a replica take over
	again    = 10 * time.Second
)

// A set is a primary with its replicas, three of them in a cluster.
type set struct {
	*testing.T

	nodes  []*testserver.Server
	guards []*testserver.Server          // sentinels
	dead   func(d time.Duration)         // a server that has been silent for that long is dead
	first  func() *testserver.Server     // the primary of what the play is about; nil while there is none
	named  func() *testserver.Server     // the one that clients are told of, if somebody has to tell them
	agree  func() bool                   // all know who is the primary of what
	asks   func(r *testserver.Server)    // asks for another primary, which may be this replica, while the old one goes on
	follow func(s, p *testserver.Server) // has s be a replica of p; nil: it becomes one by itself
}

// within waits for what has to be, however busy the machine is.
func (s *set) within(what string, ok func() bool) {
	s.Helper()
	if !locktest.Within(locktest.Generous, func() bool { time.Sleep(10 * time.Millisecond); return ok() }) {
		for _, n := range slices.Concat(s.nodes, s.guards) {
			s.Log(n.Addr(), " ", ask(n, "ROLE"), "\n", n.Log())
		}
		s.Fatal("it takes too long: ", what)
	}
}

// ask asks twice: Sentinel closes the connections to a server whose role it
// changes.
func ask(s *testserver.Server, args ...string) string {
	v, err := s.Do(args...)
	if err != nil {
		if v, err = s.Do(args...); err != nil {
			return err.Error()
		}
	}
	return fmt.Sprint(v)
}

func isPrimary(s *testserver.Server) bool { return strings.HasPrefix(ask(s, "ROLE"), "[master") }

// followers returns the replicas of a primary.
func (s *set) followers(primary *testserver.Server) (all []*testserver.Server) {
	_, port, _ := net.SplitHostPort(primary.Addr())
	for _, n := range s.nodes {
		if strings.HasPrefix(ask(n, "ROLE"), "[slave 127.0.0.1 "+port+" ") {
			all = append(all, n)
		}
	}
	return all
}

// settled says whether all servers do what they are for.
func (s *set) settled() bool {
	for _, n := range s.nodes {
		info := ask(n, "INFO", "replication")
		if isPrimary(n) {
			if strings.Count(info, "state=online") != len(s.followers(n)) {
				return false
			}
		} else if !strings.Contains(info, "master_link_status:up") {
			return false
		}
	}
	return s.agree()
}

// settles waits until all is as before, and a server that is slow is not dead any
// more.
func (s *set) settles() {
	s.Helper()
	s.within("all are settled", s.settled)
	s.dead(calm)
	s.within("all are settled", s.settled) // what had begun before is over
}

// taken returns which of the replicas is the primary. The old one may stand still.
func (s *set) taken(replicas []*testserver.Server) *testserver.Server {
	for _, r := range replicas {
		if isPrimary(r) && (s.named == nil || s.named() == r) {
			return r
		}
	}
	return nil
}

// successor waits until one of the replicas is the primary.
func (s *set) successor(replicas []*testserver.Server) (next *testserver.Server) {
	s.Helper()
	s.within("another primary", func() bool {
		next = s.taken(replicas)
		return next != nil
	})
	return next
}

// primary returns the primary of what the play is about, and its replicas.
func (s *set) primary() (p *testserver.Server, replicas []*testserver.Server) {
	s.Helper()
	s.within("a primary with its replicas", func() bool {
		if p = s.first(); p != nil {
			replicas = s.followers(p)
		}
		return len(replicas) > 0
	})
	return p, replicas
}

// follows makes the old primary a replica, and waits until all is as before.
func (s *set) follows(old, next *testserver.Server) {
	s.Helper()
	if s.follow != nil {
		s.follow(old, next)
	}
	s.settles()
}

// killed kills the primary after its replicas have missed what happened for a
// while.
func (s *set) killed(time.Duration, *rand.Rand) {
	s.Helper()
	old, replicas := s.primary()
	s.dead(deadAfter)
	for _, r := range replicas {
		r.Pause()
	}
	ask(old, "CLIENT", "KILL", "TYPE", "replica")
	time.Sleep(missed)
	old.Kill()
	for _, r := range replicas {
		r.Resume()
	}
	next := s.successor(replicas)
	old.Restart()
	s.follows(old, next)
}

// stoodStill has the primary stand still until another one has taken its place,
// and then go on as if nothing had happened.
func (s *set) stoodStill(_ time.Duration, own *rand.Rand) {
	s.Helper()
	old, replicas := s.primary()
	s.dead(deadAfter)
	old.Pause()
	next := s.successor(replicas)
	time.Sleep(upTo(own, time.Second))
	old.Resume()
	time.Sleep(upTo(own, stays))
	s.follows(old, next)
}

// alive has another one take the place of a primary that goes on: those who do not
// know yet still ask it.
func (s *set) alive(_ time.Duration, own *rand.Rand) {
	s.Helper()
	old, replicas := s.primary()
	var next *testserver.Server
	for n := 0; next == nil; n++ { // a busy replica may not get it done
		if n == attempts {
			s.Fatal("no replica takes over")
		}
		s.asks(replicas[0])
		locktest.Within(again, func() bool {
			next = s.taken(replicas)
			return next != nil
		})
	}
	time.Sleep(upTo(own, stays))
	s.follows(old, next)
}

func (s *set) restarted(time.Duration, *rand.Rand) {
	s.Helper()
	old, _ := s.primary()
	old.Restart()
	if s.follow != nil { // it begins as it was at first
		s.follow(old, nil)
	}
	s.settles()
}

// stalls has one stand still that nobody takes for dead.
func (s *set) stalls(isPrimary bool) func(d time.Duration, own *rand.Rand) {
	return func(d time.Duration, own *rand.Rand) {
		s.Helper()
		n, replicas := s.primary()
		if !isPrimary {
			n = replicas[own.IntN(len(replicas))]
		}
		stall(n, d)
	}
}

// restartsReplica has a replica miss what happens for a while. It comes back
// beside a primary that goes on, or stands still just then. The server that would
// begin as a primary is left out.
func (s *set) restartsReplica(d time.Duration, own *rand.Rand) {
	s.Helper()
	p, replicas := s.primary()
	if s.follow != nil {
		replicas = slices.DeleteFunc(replicas, func(r *testserver.Server) bool { return r == s.nodes[0] })
	}
	r := replicas[own.IntN(len(replicas))]
	r.Kill()
	time.Sleep(upTo(own, d))
	if own.IntN(2) == 0 {
		p.Pause()
	}
	r.Restart()
	time.Sleep(upTo(own, d))
	p.Resume()
	if s.follow != nil {
		s.follow(r, p)
	}
	s.settles() // a node of a cluster begins with the time that it was started with, not with calm
}

func (s *set) faults() []serverFault {
	return []serverFault{
		{what: "failover, the primary was killed", loss: failed, strike: s.killed},
		{what: "failover, the primary stood still", loss: split, strike: s.stoodStill},
		{what: "failover, the primary was alive", loss: split, strike: s.alive},
		{what: "primary restarts without data", loss: wiped, strike: s.restarted},
		{what: "primary stalls", strike: s.stalls(true)},
		{what: "replica stalls", strike: s.stalls(false)},
		{what: "replica restarts", strike: s.restartsReplica},
	}
}
