package sim

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
)

// A checker that finds fault with what is right, or has nothing to judge, would make each campaign worthless.
func TestTheFleetIsRightAboutEachTypeIfNothingGoesWrong(t *testing.T) {
	for _, typ := range Held() {
		t.Run(typ, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lines, claims := fleet(t, typ), map[[2]int]bool{}
				for _, l := range lines {
					claims[[2]int{l.Process, l.Number}] = true
				}
				if len(claims) < 30 {
					t.Errorf("only %d claims", len(claims))
				}
				for _, wrong := range Judge(typ, lines) {
					t.Error(wrong)
				}
			})
		})
	}
}

// fleet returns what the workers of two processes write, with a server and a network that do nothing wrong.
func fleet(t *testing.T, typ string) (lines []Line) {
	t.Helper()
	server, start := newNode(), time.Now()
	ctx, cancel := context.WithTimeout(bg, 20*time.Second)
	defer cancel()
	var mu sync.Mutex
	var busy sync.WaitGroup
	var clients []*redlatch.Client
	for process := range 2 {
		way := newLink(newChance(1, uint64(process)), server, weather{}, func(string, ...any) {})
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
