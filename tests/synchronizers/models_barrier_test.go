package synchronizers

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/barrier"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// TestBarrierProperties lets clients arrive, give up, reset and die at random,
// with lost replies and late requests. No generation goes with fewer than its
// parties, or with one of them counted twice; no more go on than it has parties;
// who goes on, or is told that its generation is broken, is told so soon after
// that generation has ended; and nobody waits with one who is dead.
func TestBarrierProperties(t *testing.T) {
	locktest.WithSeeds(t, 3, func(w *locktest.World, seed uint64) { newBarrierModel(w, seed).run() })
}

const modelParties = 4

type barrierModel struct {
	*locktest.World
	*chaos

	// Looked at by watched, and inside alone.
	current  string         // the generation that gathers
	ends     []time.Time    // when generations have ended
	trips    []time.Time    // when those that went have
	went     map[string]int // by arrival: its generation went
	places   [modelParties]int
	died     time.Time
	deadID   string
	released int
	broken   int
}

func newBarrierModel(w *locktest.World, seed uint64) *barrierModel {
	m := &barrierModel{World: w, chaos: newChaos(w, seed, "barrier."), went: map[string]int{}}
	m.watch = m.watched
	m.lossy = seed%3 != 0
	return m
}

func (m *barrierModel) record(generation string) map[string]string {
	key := "redlatch_barrier:{orders}:" + generation
	fields := map[string]string{}
	if m.Server.Exists(key) {
		names, _ := m.Server.HKeys(key)
		for _, f := range names {
			fields[f] = m.Server.HGet(key, f)
		}
	}
	ended := "redlatch_barrier:{orders}:ended"
	slots, _ := m.Server.HKeys(ended)
	for _, slot := range slots {
		text := strings.Fields(m.Server.HGet(ended, slot))
		if text[0] != generation {
			continue
		}
		fields["how"], fields["who"] = text[1], text[2]
		for _, arrived := range text[3:] {
			id, index, _ := strings.Cut(arrived, "=")
			fields[id] = index
		}
	}
	return fields
}

// watched looks at what a script has made of the generation that gathered before.
func (m *barrierModel) watched(s string, args []string, r driver.Reply, err error) {
	if err != nil {
		m.Errorf("%s %q: %v", s, args, err)
	}
	before := m.current
	m.current = m.Server.HGet("redlatch_barrier:{orders}", "generation")
	now := time.Now()
	if before == m.current || before == "" {
		return
	}
	m.ends = append(m.ends, now)
	fields := m.record(before)
	indexes := map[string]bool{}
	for id, index := range fields {
		if !strings.Contains(id, ":") || index == "gone" {
			continue
		}
		if n, err := strconv.Atoi(index); err != nil || n < 0 || n >= modelParties || indexes[index] {
			m.Errorf("generation %s: %v", before, fields)
		}
		indexes[index] = true
		if fields["how"] == "tripped" {
			m.went[id]++
			if m.went[id] > 1 {
				m.Errorf("%s went with %d generations", id, m.went[id])
			}
		}
	}
	switch fields["how"] {
	case "tripped":
		m.trips = append(m.trips, now)
		if len(indexes) != modelParties {
			m.Errorf("%s let generation %s go with %d parties: %v", s, before, len(indexes), fields)
		}
	case "left", "dead", "reset":
		if len(indexes) == modelParties {
			m.Errorf("%s broke generation %s, which was complete: %v", s, before, fields)
		}
	default:
		m.Errorf("%s has ended generation %s as %v", s, before, fields)
	}
}

// returned looks at what Await has returned.
func (m *barrierModel) returned(c *chaotic, start time.Time, index int, err error) {
	// A poll may find that the one who asked has just left, or be lost twice.
	const soon = 6 * time.Second
	now := time.Now()
	between := func(ends []time.Time) bool {
		for _, at := range ends {
			if !at.Before(start) && (c.dead.Load() || now.Sub(at) <= soon) {
				return true
			}
		}
		return false
	}
	m.alone(func() {
		switch {
		case err == nil:
			m.released++
			m.places[index]++
			if m.places[index] > len(m.trips) {
				m.Errorf("%d have gone on as number %d, and %d generations have gone", m.places[index], index, len(m.trips))
			}
			if !between(m.trips) {
				m.Errorf("went on after %v, and no generation has gone in that time, or long ago", now.Sub(start))
			}
		case errors.Is(err, barrier.ErrBroken):
			m.broken++
			if !between(m.ends) {
				m.Errorf("after %v: %v, and no generation has ended in that time, or long ago", now.Sub(start), err)
			}
		case !m.died.IsZero() && !c.dead.Load() && now.Sub(m.died) > 45*time.Second && now.Sub(start) > 45*time.Second:
			for id, index := range m.record(m.current) {
				if strings.HasPrefix(id, m.deadID) && index != "gone" {
					m.Errorf("still with %s, which died %v ago: %v", id, now.Sub(m.died), err)
				}
			}
		}
	})
}

func (m *barrierModel) run() {
	clients := []*chaotic{m.process(redlatch.Config{}), m.process(redlatch.Config{}), m.process(redlatch.Config{})}
	over := time.Now().Add(90 * time.Second)
	var wg sync.WaitGroup
	for n, c := range clients {
		workers := 1 // without the last client there are too few
		if n == len(clients)-1 {
			workers = 2
		}
		b := barrier.New(c.Client, "orders", modelParties)
		for range workers {
			wg.Go(func() {
				for time.Now().Before(over) {
					time.Sleep(m.ms(1000))
					limit := time.Minute
					if m.draw(8) == 0 {
						limit = m.ms(3000)
					}
					ctx, cancel := context.WithTimeout(bg, limit)
					start := time.Now()
					index, err := b.Await(ctx)
					m.returned(c, start, index, err)
					cancel()
					if m.draw(40) == 0 {
						_ = b.Reset(bg)
					}
				}
			})
		}
	}
	time.Sleep(30 * time.Second)
	for range 500 { // dies when one has arrived, and another one is missing
		in := 0
		last := clients[len(clients)-1]
		m.alone(func() {
			for id := range m.record(m.current) {
				if strings.HasPrefix(id, last.ID()) {
					in++
				}
			}
			if in == 1 {
				m.died, m.deadID = time.Now(), last.ID()
				last.dead.Store(true)
			}
		})
		if in == 1 {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	all := locktest.Later(func() bool { wg.Wait(); return true })
	select {
	case <-all:
	case <-time.After(10 * time.Minute):
		m.Error("somebody hangs")
		<-all
	}
	clients[len(clients)-1].dead.Store(false)
	time.Sleep(time.Minute)
	m.alone(func() {
		if len(m.trips) < 5 || m.broken == 0 || m.died.IsZero() {
			m.Error("hardly anything has happened: this test shows nothing")
		}
		if want := len(m.trips) * modelParties; !m.lossy && m.released > want {
			m.Errorf("%d have gone on with %d generations", m.released, len(m.trips))
		}
		m.Logf("%d scripts, %d generations, of which %d went; %d went on, %d were broken", m.runs, len(m.ends), len(m.trips), m.released, m.broken)
	})
	m.WantQuiet()
}
