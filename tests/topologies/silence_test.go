package topologies

import (
	"strconv"
	"time"

	"github.com/redlatch/redlatch"
)

func pause(s *scene, mode string, d time.Duration) {
	s.server.MustDo("CLIENT", "PAUSE", strconv.FormatInt(d.Milliseconds(), 10), mode)
}

// pausedBriefly: what was sent is executed later, when it has been sent again.
func pausedBriefly(mode string) func(s *scene) {
	return func(s *scene) {
		pause(s, mode, 3*time.Second)
		var awaits []func()
		s.each(func(h *household) { awaits = append(awaits, h.calls()) })
		s.each((*household).goesOn)
		for _, await := range awaits {
			await()
		}
	}
}

// pausedForLong: longer than a lease. Redis expires nothing meanwhile, but nobody
// knows that.
func pausedForLong(s *scene) {
	pause(s, "ALL", shortLease+time.Second)
	s.each(func(h *household) { h.wantLost(shortLease+soon, redlatch.LostExpired, "lease") })
	s.each(func(h *household) {
		h.wantServed(2*soon, "lease", "semaphore", "pool", "latch", "barrier")
		h.giveUp()
		h.breakUp()
		h.wantServed(soon)
	})
}

func clientsKilled(kind string) func(s *scene) {
	return func(s *scene) {
		s.server.MustDo("CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes")
		s.each(func(h *household) {
			h.awaitListeners()
			h.goesOn()
		})
	}
}

func scriptsForgotten(s *scene) {
	s.server.MustDo("SCRIPT", "FLUSH")
	s.each((*household).goesOn)
}
