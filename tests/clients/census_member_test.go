package clients

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/census"
	"github.com/redlatch/redlatch/internal/claim"
	"github.com/redlatch/redlatch/internal/inspect"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/wire"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// A member takes part, and says what a test wants it to.
type member struct {
	*census.Census
	id string
}

// owner is an owner id of the member's.
func (m *member) owner(n uint64) string { return wire.Owner(m.id, n) }

// join makes a member, which has a connection of its own and ends with the test.
func join(tb testing.TB, d driver.Redis, name string, claims func(m *member) []claim.Claim) *member {
	tb.Helper()
	server, err := request.New(request.Options{
		Driver: d, Outage: 10 * time.Second, Length: 30 * time.Second, AckTimeout: time.Second, Answered: func(string) {},
	})
	if err != nil {
		tb.Fatal(err)
	}
	m := &member{id: wire.NewClientID()}
	m.Census = census.Start(census.Options{
		Server: server, Inspector: &inspect.Inspector{Server: server, ID: m.id}, ID: m.id, Identity: census.Identity{Name: name, PID: 7},
		Claims: func(yield func(claim.Claim, context.Context) bool) {
			if claims == nil {
				return
			}
			for _, c := range claims(m) {
				if !yield(c, nil) {
					return
				}
			}
		},
	})
	tb.Cleanup(func() {
		server.Stop()
		m.Stop()
		server.End(time.Second)
	})
	return m
}

// A crowd listens by one connection and answers as the test says: a thousand
// clients for the price of one.
type crowd struct {
	w    *locktest.World
	mu   sync.Mutex
	said []string // answers that it has heard
}

// crowdOf starts one. answer returns what it sends to a question; nil sends
// nothing.
func crowdOf(w *locktest.World, answer func(question string) []string) *crowd {
	c := &crowd{w: w}
	w.Listen(func(channel, text string) {
		if channel == wire.Answers {
			c.mu.Lock()
			c.said = append(c.said, text)
			c.mu.Unlock()
		} else if answer != nil {
			go func() {
				for _, text := range answer(text) {
					w.Server.Publish(wire.Answers, text)
				}
			}()
		}
	}, wire.Asked, wire.Answers)
	return c
}

// heard returns the answers since the last call.
func (c *crowd) heard() []string {
	c.w.Settle()
	c.mu.Lock()
	defer c.mu.Unlock()
	said := c.said
	c.said = nil
	return said
}

// fields returns a message by its fields.
func fields(tb testing.TB, text string) map[string]any {
	tb.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		tb.Fatalf("%s: %v", text, err)
	}
	return m
}
