package redlatch_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/bridge"
)

// A puppet is a server in memory with as much sense as it takes to hold and to wait.
type puppet struct {
	driver.Redis

	mu      sync.Mutex
	owners  map[string][]string // by names of locks
	readers map[string]bool     // the locks whose owners read
	full    bool                // synchronizers have nothing to give
	mute    bool                // no renewal is answered
}

const stranger = "0f8fad5b-d9cb-469f-a165-70867728950e:52"

var errMute = &driver.RunError{Outcome: driver.Unknown, Err: errors.New("no answer")}

func number(n int64) driver.Reply { return driver.Reply{Kind: driver.ReplyInt, Int: n} }
func text(s string) driver.Reply  { return driver.Reply{Kind: driver.ReplyString, Str: s} }
func list(all ...driver.Reply) driver.Reply {
	return driver.Reply{Kind: driver.ReplyList, List: all}
}

func (p *puppet) Run(_ context.Context, s *driver.Script, keys, args []string) (driver.Reply, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	name := s.Name()
	switch {
	case strings.HasSuffix(name, ".renew"):
		if p.mute {
			return driver.Reply{}, errMute
		}
		return list(slices.Repeat([]driver.Reply{number(1)}, len(keys))...), nil
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
	case name == "expirable.release":
		return list(number(1), number(0)), nil
	case strings.HasSuffix(name, ".release"):
		p.owners[keys[0]] = slices.DeleteFunc(p.owners[keys[0]], func(owner string) bool { return slices.Contains(args, owner) })
		return number(1), nil
	}
	return p.synchronizer(name, args), nil
}

func (p *puppet) take(script, lock, owner string) driver.Reply {
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

func (p *puppet) synchronizer(script string, args []string) driver.Reply {
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

func (p *puppet) fill(full bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.full = full
}

func (p *puppet) silence(mute bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mute = mute
}

// give gives a lock to somebody else, or takes it away.
func (p *puppet) give(lock string, owners ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.owners[lock] = owners
}

func (*puppet) Subscribe(string, bool, func(driver.Notice)) func() { return func() {} }
func (*puppet) OnBreak(func(string)) func()                        { return func() {} }
func (*puppet) Node(string) string                                 { return "" }
func (*puppet) Traits() driver.Traits {
	return driver.Traits{Name: "puppet", Timeout: 100 * time.Millisecond}
}

// asked returns a client of a puppet, which closes with the test.
func asked(t *testing.T, cfg redlatch.Config) (*redlatch.Client, *puppet) {
	t.Helper()
	p := &puppet{owners: map[string][]string{}, readers: map[string]bool{}}
	c, err := redlatch.New(p, cfg)
	if err != nil {
		t.Fatal(err)
	}
	bridge.Open(c).Hooks.Start(true) // so that call sites are of use
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c, p
}
