// Package puppet has a server in memory for tests: it answers scripts by their
// names, and has as much sense as it takes to hold and to wait. Of a lock it knows
// who has it, and tells others what the script would. Lists of keys that end by
// themselves, queues and messages are beyond it, and synchronizers have what it is
// told.
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
	others  int                 // so many processes wait to write
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
		return p.renew(name, keys, args), nil
	case name == "readwrite.read.take", name == "lock.take", name == "readwrite.write.take", name == "grouplock.take", name == "fairlock.take":
		return p.take(name, keys[0], args[1]), nil
	case name == "lock.yield", name == "readwrite.write.yield":
		return p.yield(keys[0], args), nil
	case name == "lock.transfer", name == "readwrite.write.transfer":
		return truth(p.move(keys[0], args[0], args[1])), nil
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
		return truth(p.move(keys[0], args[0], args[1])), nil
	case name == "readwrite.read.ask":
		return number(int64(p.others)), nil
	case name == "expirable.release":
		return list(number(1), number(0)), nil
	case strings.HasSuffix(name, "lock.release"), name == "readwrite.release":
		return p.release(name, keys[0], args), nil
	}
	return p.synchronizer(name, args), nil
}

// truth returns 1 or 0.
func truth(yes bool) driver.Reply {
	if yes {
		return number(1)
	}
	return number(0)
}

// has says whether an owner has a lock.
func (p *Puppet) has(lock, owner string) bool { return slices.Contains(p.owners[lock], owner) }

// drop takes a lock from an owner, and says whether that had it.
func (p *Puppet) drop(lock, owner string) bool {
	had := p.has(lock, owner)
	p.owners[lock] = slices.DeleteFunc(slices.Clone(p.owners[lock]), func(other string) bool { return other == owner })
	return had
}

// move gives a lock to another id of its owner, and says whether that has it now:
// it may have had it already.
func (p *Puppet) move(lock, owner, next string) bool {
	if p.drop(lock, owner) {
		p.owners[lock] = append(p.owners[lock], next)
	}
	return p.has(lock, next)
}

// yield is move, unless the lock is to be free in any case. Nobody listens.
func (p *Puppet) yield(lock string, args []string) driver.Reply {
	if args[5] == "1" && p.drop(lock, args[0]) {
		return number(0)
	}
	if p.move(lock, args[0], args[1]) {
		return list(number(1))
	}
	return number(-1)
}

// renew says for each lock whether its owner has it. Whoever asks for permits has
// them.
func (p *Puppet) renew(script string, keys, args []string) driver.Reply {
	var all []driver.Reply
	switch script {
	case "lock.renew":
		for i, key := range keys {
			all = append(all, truth(p.has(key, args[3*i])))
		}
	case "readwrite.renew":
		for at := 0; len(args) > 0; args = args[3:] {
			all = append(all, truth(p.has(keys[at], args[0])))
			if at++; at < len(keys) && strings.Contains(keys[at], args[0]) { // what keeps it alive while it reads
				at++
			}
		}
	case "grouplock.renew":
		for _, key := range keys {
			all = append(all, truth(p.has(key, args[0])))
			values, _ := strconv.Atoi(args[3])
			args = args[5+values:]
		}
	default:
		all = slices.Repeat([]driver.Reply{number(1)}, len(keys))
	}
	return list(all...)
}

func (p *Puppet) release(script, lock string, args []string) driver.Reply {
	if script == "fairlock.release" {
		for i, owner := range args[2:] {
			if p.drop(lock, owner) {
				return number(int64(i + 1))
			}
		}
		return number(0)
	}
	had := p.drop(lock, args[0])
	if had && script == "readwrite.release" && len(p.owners[lock]) > 0 {
		return number(-1)
	}
	return truth(had)
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
	if !p.has(lock, owner) {
		p.owners[lock] = append(others, owner)
	}
	p.readers[lock] = reads
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

// Others says how many other processes wait to write what is read here.
func (p *Puppet) Others(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.others = n
}

// Give gives a lock to somebody else, who does not read, or takes it away.
func (p *Puppet) Give(lock string, owners ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.owners[lock], p.readers[lock] = owners, false
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
