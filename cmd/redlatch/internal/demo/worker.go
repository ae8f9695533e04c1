package demo

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/connect"
	"github.com/redlatch/redlatch/redlatchrueidis"
)

// WorkerCommand is the command of redlatch that calls Worker.Run.
const WorkerCommand = "demo-worker"

const lockName = "demo"

// An event is what a worker tells its parent, as a line of JSON.
type event struct {
	At    time.Time `json:"at"`
	Kind  string    `json:"kind"`
	Owner string    `json:"owner,omitempty"`
	Text  string    `json:"text,omitempty"`
}

// The kinds of event.
const (
	evWaiting = "waiting"
	evHolding = "holding"
	evStaying = "staying" // holds, and stays until told to go
	evLeft    = "left"
	evLost    = "lost"
	evFailed  = "failed"
)

// The commands of the parent, as lines.
const (
	cmdStay = "stay" // stay in the next section
	cmdGo   = "go"   // leave it
)

// A Worker is one worker process: it contends for the lock until its standard
// input ends, which it does when the parent dies.
type Worker struct {
	ID       int
	URL      string
	Records  string        // the file to append records to
	Watchdog time.Duration // the lease of its holds

	out  *json.Encoder
	stay atomic.Bool
	goOn chan struct{}
}

// Run is the worker's main function.
func (w *Worker) Run(in io.Reader, out io.Writer) error {
	// What the terminal sends reaches all its processes; the parent decides.
	signal.Ignore(os.Interrupt, syscall.SIGHUP, syscall.SIGQUIT)
	w.out, w.goOn = json.NewEncoder(out), make(chan struct{}, 1)
	records, err := openRecorder(w.Records)
	if err != nil {
		return err
	}
	defer records.close()

	settings, err := connect.Parse(w.URL)
	if err != nil {
		return err
	}
	// A dead connection must be noticed within a third of the lease.
	timeout := min(w.Watchdog/5, 3*time.Second)
	settings.DialTimeout, settings.Timeout = timeout, timeout
	client, err := redlatchrueidis.OpenSettings(settings, redlatch.Config{WatchdogTimeout: w.Watchdog, CloseTimeout: 500 * time.Millisecond})
	if err != nil {
		return err
	}
	defer client.Close()

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		defer cancel()
		w.listen(in)
	}()
	lock := client.Lock(lockName)
	for ctx.Err() == nil {
		if err := w.section(ctx, lock, records); err != nil {
			return err
		}
	}
	return nil
}

// listen obeys the parent until there is none.
func (w *Worker) listen(in io.Reader) {
	for lines := bufio.NewScanner(in); lines.Scan(); {
		switch lines.Text() {
		case cmdStay:
			w.stay.Store(true)
		case cmdGo:
			w.stay.Store(false)
			select {
			case w.goOn <- struct{}{}:
			default:
			}
		}
	}
}

func (w *Worker) tell(e event) {
	if e.At.IsZero() {
		e.At = time.Now()
	}
	_ = w.out.Encode(e) //nolint:errchkjson // times of this year can be encoded, and a parent that is gone ends the input
}

// section is one round: wait, enter, work, leave, release.
func (w *Worker) section(ctx context.Context, lock *redlatch.Lock, records *recorder) error {
	w.tell(event{Kind: evWaiting})
	hold, err := lock.Acquire(ctx)
	if err != nil {
		if ctx.Err() == nil {
			w.tell(event{Kind: evFailed, Text: err.Error()})
			pause(ctx, 100*time.Millisecond)
		}
		return nil
	}
	held := hold.Context()
	if err := records.write(time.Now(), os.Getpid(), w.ID, enter); err != nil {
		return fmt.Errorf("writing a record: %w", err)
	}
	if w.stay.Load() {
		w.tell(event{Kind: evStaying, Owner: hold.ID()})
		select {
		case <-w.goOn:
		case <-held.Done():
		case <-ctx.Done():
		}
	} else {
		w.tell(event{Kind: evHolding, Owner: hold.ID()})
		pause(held, time.Duration(5+rand.IntN(20))*time.Millisecond)
	}
	left := time.Now()
	if err := records.write(left, os.Getpid(), w.ID, leave); err != nil {
		return fmt.Errorf("writing a record: %w", err)
	}
	if err := hold.Err(); errors.Is(err, redlatch.ErrLost) {
		w.tell(event{At: left, Kind: evLost, Owner: hold.ID(), Text: err.Error()})
	}
	if err := hold.Release(ctx); err != nil && !errors.Is(err, redlatch.ErrLost) && ctx.Err() == nil {
		w.tell(event{Kind: evFailed, Text: err.Error()})
	}
	w.tell(event{Kind: evLeft})
	pause(ctx, time.Duration(rand.IntN(5))*time.Millisecond)
	return nil
}

// pause sleeps for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
