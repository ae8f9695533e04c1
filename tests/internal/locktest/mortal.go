package locktest

import (
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/observe"
)

// A Mortal client is one whose process can vanish.
type Mortal struct {
	*redlatch.Client
	Dead   atomic.Bool
	Takes  atomic.Int64
	events struct {
		sync.Mutex
		requeued []observe.RequeuedEvent
	}
}

// Mortal returns a client that lives, as yet.
func (w *World) Mortal() *Mortal {
	m := &Mortal{}
	requeued := observe.Hooks{Requeued: func(e observe.RequeuedEvent) {
		m.events.Lock()
		defer m.events.Unlock()
		m.events.requeued = append(m.events.requeued, e)
	}}
	m.Client = w.Tapped(redlatch.Config{OutageTimeout: time.Hour}, &Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
		if m.Dead.Load() {
			return driver.Reply{}, ErrReplyLost
		}
		if s == "fairlock.take" {
			m.Takes.Add(1)
		}
		return next()
	}}, requeued)
	return m
}

// Requeued returns how often a waiter of the client was put into the queue again.
func (m *Mortal) Requeued() int {
	synctest.Wait()
	m.events.Lock()
	defer m.events.Unlock()
	return len(m.events.requeued)
}
