// Package puppet has a server in memory for tests: it answers scripts by their names, and has as much sense as it takes
// to hold and to wait.
package puppet

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redlatch/redlatch/driver"
)

// A Puppet is the server, as a driver shows it. New makes one.
type Puppet struct {
	driver.Redis

	mu      sync.Mutex
	owners  map[string][]string // by names of locks
	readers map[string]bool     // the locks whose owners read
	full    bool                // synchronizers have nothing to give
	mute    bool                // no renewal is answered
}

// New returns a server that has nothing.
func New() *Puppet { return &Puppet{owners: map[string][]string{}, readers: map[string]bool{}} }

// Stranger is an owner of another client.
const Stranger = "0f8fad5b-d9cb-469f-a165-70867728950e:52"

var errMute = &driver.RunError{Outcome: driver.Unknown, Err: errors.New("no answer")}

func number(n int64) driver.Reply { return driver.Reply{Kind: driver.ReplyInt, Int: n} }
func text(s string) driver.Reply  { return driver.Reply{Kind: driver.ReplyString, Str: s} }
func list(all ...driver.Reply) driver.Reply {
	return driver.Reply{Kind: driver.ReplyList, List: all}
}

// Run answers a script.
func (p *Puppet) Run(_ context.Context, s *driver.Script, keys, args []string) (driver.Reply, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	name := s.Name()
	switch {
	case strings.HasSuffix(name, ".renew"):
		if p.mute {
			return driver.Reply{}, errMute
		}
		n := len(keys)
		if name == "readwrite.renew" { // whose keys are also what keeps readers alive
			n = len(args) / 3
		}
		return list(slices.Repeat([]driver.Reply{number(1)}, n)...), nil
	case name == "readwrite.read.take", name == "lock.take", name == "readwrite.write.take", name == "grouplock.take", name == "fairlock.take":
		return p.take(name, keys[0], args[1]), nil
	case name == "lock.yield", name == "lock.transfer", name == "readwrite.write.yield":
		p.owners[keys[0]] = []string{args[1]}
		if name == "lock.transfer" {
			return number(1), nil
		}
		return list(number(1)), nil
	case name == "multilock.take":
		for i, key := range keys {
			if others := p.owners[key]; len(others) > 0 {
				return list(number(int64(i+1)), number(60_000), text(others[0])), nil
			}
		}
		for i, key := range keys {
			p.owners[key] = []string{args[i+1]}
		}
		return number(1), nil
	case name == "lock.keep":
		p.owners[keys[0]] = []string{args[1]}
		return number(1), nil
	case name == "readwrite.read.ask":
		return number(0), nil
	case name == "expirable.release":
		return list(number(1), number(0)), nil
	case strings.HasSuffix(name, ".release"):
		p.owners[keys[0]] = slices.DeleteFunc(p.owners[keys[0]], func(owner string) bool { return slices.Contains(args, owner) })
		return number(1), nil
	}
	return p.synchronizer(name, args), nil
}

func (p *Puppet) take(script, lock, owner string) driver.Reply {
	reads, others := script == "readwrite.read.take", p.owners[lock]
	if len(others) > 0 && !slices.Contains(others, owner) && (!reads || !p.readers[lock]) {
		facts := []driver.Reply{number(60_000), text(others[0])}
		if script == "fairlock.take" {
			facts = append(facts, text(others[0]), number(0))
		}
		return list(facts...)
	}
	p.owners[lock], p.readers[lock] = append(others, owner), reads
	return number(1)
}

func (p *Puppet) synchronizer(script string, args []string) driver.Reply {
	given := func(n int) driver.Reply {
		if p.full {
			n = 0
		}
		return number(int64(n))
	}
	switch script {
	case "semaphore.exchange":
		n, _ := strconv.ParseInt(args[0], 10, 64)
		return list(number(n), given(len(args)-6))
	case "expirable.take":
		n := 0
		for at := 1; at < len(args); n++ {
			ids, _ := strconv.Atoi(args[at+1])
			at += 2 + ids
		}
		return list(given(n), number(60_000))
	case "ratelimiter.take":
		if p.full {
			return list(number(-60_000), number(1000))
		}
		return list(number(int64(len(args)-2)), number(1000))
	case "latch.count":
		if p.full {
			return text("1")
		}
		return driver.Reply{Kind: driver.ReplyNil}
	case "barrier.arrive":
		return list(text("waits"), text(""), number(1))
	case "barrier.poll":
		if p.full {
			return list(text("waits"), text(""))
		}
		return list(text("tripped"), text(""))
	}
	return number(1)
}

// Fill says whether synchronizers have nothing to give.
func (p *Puppet) Fill(full bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.full = full
}

// Silence says whether renewals go unanswered.
func (p *Puppet) Silence(mute bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mute = mute
}

// Give gives a lock to somebody else, or takes it away.
func (p *Puppet) Give(lock string, owners ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.owners[lock] = owners
}

// Owners returns who has a lock.
func (p *Puppet) Owners(lock string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.owners[lock])
}

// Subscribe delivers nothing: those who wait ask again after their pauses.
func (*Puppet) Subscribe(string, bool, func(driver.Notice)) func() { return func() {} }

// OnBreak has nothing to tell: no connection breaks.
func (*Puppet) OnBreak(func(string)) func() { return func() {} }

// Node says that there is one server only.
func (*Puppet) Node(string) string { return "" }

// Traits are those of a driver that answers promptly.
func (*Puppet) Traits() driver.Traits {
	return driver.Traits{Name: "puppet", Timeout: 100 * time.Millisecond}
}
