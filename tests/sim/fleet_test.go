package sim

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
)

// A checker that finds fault with what is right, or has nothing to judge, would
// make each campaign worthless.
func TestTheFleetIsRightAboutEachTypeIfNothingGoesWrong(t *testing.T) {
	for _, typ := range Held() {
		t.Run(typ, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				verdict := Judge(typ, fleet(t, typ))
				if verdict.Claims < 30 {
					t.Errorf("only %d claims", verdict.Claims)
				}
				for _, wrong := range verdict.Wrong {
					t.Error(wrong)
				}
			})
		})
	}
}

// fleet returns what the workers of two processes write, with a server and a
// network that do nothing wrong.
func fleet(t *testing.T, typ string) (lines []Line) {
	t.Helper()
	server, start := newNode(), time.Now()
	ctx, cancel := context.WithTimeout(bg, 20*time.Second)
	defer cancel()
	var mu sync.Mutex
	var busy sync.WaitGroup
	var clients []*redlatch.Client
	for process := range 2 {
		way := newLink(newChance(1, uint64(process)), server, weather{}, &history{start: start})
		client, err := redlatch.New(way, redlatch.Config{WatchdogTimeout: 2 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		clients = append(clients, client)
		for n := range workers {
			w := Worker{
				Client: client, Type: typ, Process: process, Number: n, Watchdog: 2 * time.Second,
				Now: func() time.Duration { return time.Since(start) },
				Write: func(l Line) {
					mu.Lock()
					defer mu.Unlock()
					lines = append(lines, l)
				},
			}
			busy.Go(func() {
				if err := w.Work(ctx, 1); err != nil {
					t.Error(err)
				}
			})
		}
	}
	busy.Wait()
	for _, c := range clients {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	time.Sleep(time.Second) // what they have sent is over
	server.mini.Close()
	return lines
}

// What nobody holds would leave the checker of holds with nothing to judge.
func TestTheFleetRefusesWhatNobodyHolds(t *testing.T) {
	for _, typ := range counts() {
		if err := (&Worker{Type: typ}).Work(t.Context(), 1); err == nil {
			t.Errorf("a worker plays a %s", typ)
		}
	}
}

// A loss that excused too much would leave nothing to find; one that excused too
// little would blame the library. Its figure is what docs/guarantees.md is
// compared with.
func TestALossExcusesTheFleetUntilLeasesAreOver(t *testing.T) {
	const s = time.Second
	line := func(process int, from, to time.Duration) Line {
		return Line{Process: process, Nest: process, Resource: "a", ID: string(rune('a' + process)), Weight: 1, Lease: 2 * s, Call: from, From: from, To: to}
	}
	lost := Loss{What: "wipe", From: 2 * s, To: 3 * s}
	for _, test := range []struct {
		name    string
		lines   []Line
		losses  []Loss
		wrong   int
		overlap time.Duration
	}{
		{"nothing is lost", []Line{line(1, 0, 4*s), line(2, 3*s, 5*s)}, nil, 1, 0},
		{"it is lost", []Line{line(1, 0, 4*s), line(2, 3*s, 5*s)}, []Loss{lost}, 0, s},
		{"its holder goes on for too long", []Line{line(1, 0, 7*s), line(2, 3*s, 7*s)}, []Loss{lost}, 1, 4 * s},
		{"nobody else had it", []Line{line(1, 0, 3*s), line(2, 4*s, 5*s)}, []Loss{lost}, 0, 0},
		{"both have it after the loss", []Line{line(1, 4*s, 5*s), line(2, 4*s, 5*s)}, []Loss{lost}, 1, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := Judge("lock", test.lines, test.losses...)
			if len(v.Wrong) != test.wrong || v.Overlaps["wipe"] != test.overlap || v.Claims != 2 {
				t.Errorf("the verdict is %+v, want %d wrong, and an overlap of %v", v, test.wrong, test.overlap)
			}
		})
	}
}
