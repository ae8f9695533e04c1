package demo

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// A state is what a worker is doing.
type state string

const (
	starting state = "starting"
	waiting  state = "waiting"
	holding  state = "HOLDS"
	between  state = "-" // between two rounds
	killed   state = "killed"
)

// A row is what is known of one worker.
type row struct {
	id, pid  int
	state    state
	since    time.Time // of the state
	acquired int
	entered  time.Time // last
	staying  bool      // holds, and stays until told to go
	cutOff   bool
	owner    string
	toldLost time.Time // when it was last told that its lock is lost
}

// A board is what is known at any moment. It is safe for concurrent use.
type board struct {
	start time.Time
	tell  func(line string) // shows a line of the story at once; may be nil

	mu      sync.Mutex
	rows    []row
	events  []string // the story so far, in lines
	losses  int
	changed chan struct{} // closed, and replaced, by every change
}

func newBoard(workers int, tell func(string)) *board {
	b := &board{start: time.Now(), tell: tell, changed: make(chan struct{})}
	for i := range workers {
		b.rows = append(b.rows, row{id: i + 1, state: starting, since: b.start})
	}
	return b
}

// update changes the row of worker id.
func (b *board) update(id int, f func(*row)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f(&b.rows[id-1])
	close(b.changed)
	b.changed = make(chan struct{})
}

// enter puts a worker into a state.
func (r *row) enter(s state, at time.Time) { r.state, r.since = s, at }

// event takes note of what a worker says.
func (b *board) event(id, pid int, e event) {
	b.update(id, func(r *row) {
		if r.pid != pid {
			return // said by a process that has been replaced
		}
		switch e.Kind {
		case evWaiting:
			r.enter(waiting, e.At)
		case evHolding, evStaying:
			r.enter(holding, e.At)
			r.acquired++
			r.entered, r.staying, r.owner = e.At, e.Kind == evStaying, e.Owner
		case evLeft:
			r.enter(between, e.At)
			r.staying = false
		case evLost:
			b.losses++
			r.toldLost, r.staying = e.At, false
		}
	})
	if e.Kind == evFailed {
		b.say("worker %d: %s", id, e.Text)
	}
}

// await waits until ok is true of the rows. ok may keep what it has seen.
func (b *board) await(ctx context.Context, ok func([]row) bool) error {
	for {
		b.mu.Lock()
		done, changed := ok(b.rows), b.changed
		b.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// say adds a line to the story.
func (b *board) say(format string, args ...any) {
	line := fmt.Sprintf("%6.2f s  ", time.Since(b.start).Seconds()) + fmt.Sprintf(format, args...)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.events = append(b.events, line)
	if b.tell != nil {
		b.tell(line)
	}
}

// A snapshot is the board at one moment.
type snapshot struct {
	at       time.Time
	elapsed  time.Duration
	rows     []row
	events   []string
	acquired int
	losses   int
}

func (b *board) snapshot() snapshot {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	s := snapshot{at: now, elapsed: now.Sub(b.start), losses: b.losses}
	s.rows = append(s.rows, b.rows...)
	s.events = append(s.events, b.events...)
	for _, r := range s.rows {
		s.acquired += r.acquired
	}
	return s
}

// line is the snapshot in one line.
func (s *snapshot) line(overlaps int) string {
	holds, waits := "nobody is inside", ""
	for _, r := range s.rows {
		switch r.state {
		case holding:
			holds = fmt.Sprintf("worker %d is inside", r.id)
		case waiting:
			waits += fmt.Sprintf(" %d", r.id)
		}
	}
	if waits == "" {
		waits = " none"
	}
	return fmt.Sprintf("%s, %s; %s, waiting:%s", count(s.acquired, "acquisition", "s"), count(overlaps, "violation", "s"), holds, waits)
}
