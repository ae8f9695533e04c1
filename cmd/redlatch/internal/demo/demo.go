package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/alicebob/miniredis/v2"
)

const (
	// DefaultWatchdog is short, so that a crash can be watched to its end.
	DefaultWatchdog = 2 * time.Second
	// stopTime is how long the workers may take to end.
	stopTime = 2 * time.Second
)

// whole is how long the demo lasts if nobody ends it; the whole story fits in.
func (o Options) whole() time.Duration { return 4*time.Second + 4*o.Watchdog }

// grace is how much longer it may last on a slow machine, to tell the story to its
// end.
func (o Options) grace() time.Duration { return 2 * o.Watchdog }

// Options configure a demo.
type Options struct {
	Out      io.Writer     // for plain lines, and the last line
	Length   time.Duration // 0: as long as the whole story takes
	Watchdog time.Duration // the lease of the workers' holds
	Workers  int           // at least 2

	// Terminal and Keys, if not nil, are a terminal for the live view.
	Terminal, Keys *os.File
	Color          bool
}

// A Summary is how a demo went.
type Summary struct {
	Acquisitions int // sections, counted from the workers' records
	Violations   int // overlaps, likewise
	Losses       int
	Signal       os.Signal // what ended it; nil if nothing did
}

// String is the demo's last line.
func (s Summary) String() string {
	return fmt.Sprintf("%s, %s, %s", count(s.Acquisitions, "acquisition", "s"),
		count(s.Violations, "violation", "s"), count(s.Losses, "loss", "es"))
}

func count(n int, noun, plural string) string {
	if n != 1 {
		noun += plural
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// Code returns the exit code that says "ended by Signal".
func (s Summary) Code() int {
	if n, ok := s.Signal.(syscall.Signal); ok {
		return 128 + int(n)
	}
	return 1
}

// A demo is one demonstration.
type demo struct {
	Options
	server   *miniredis.Miniredis
	dir      string
	records  string // the file of the workers' records
	recorder *recorder
	oracle   *oracle
	board    *board
	view     *view      // nil: plain lines
	broken   chan error // a worker that ended by itself, or a line that could not be written

	// processes are the workers, by id from 1. They belong to the story while
	// it is being told.
	processes []*process
}

// Run runs the demo and returns when it has ended and every process with it.
// An error means that it could not be shown; violations are no error.
func Run(opt Options) (Summary, error) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGQUIT)
	if !signal.Ignored(syscall.SIGHUP) { // as nohup does
		signal.Notify(signals, syscall.SIGHUP)
	}
	defer signal.Stop(signals)
	// A reader that is gone is an error of the write: to die of it would leave the
	// records behind.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)

	opt.Length = cmp.Or(opt.Length, opt.whole())
	d := &demo{Options: opt, broken: make(chan error, 1)}
	sum, err := d.run(signals)
	if d.view != nil {
		// What the view showed went with it.
		for _, line := range d.board.snapshot().events {
			fmt.Fprintln(d.Out, line)
		}
	}
	d.close()
	if err != nil {
		return sum, err
	}
	for _, o := range d.oracle.overlaps {
		fmt.Fprintln(d.Out, "VIOLATION:", o)
	}
	fmt.Fprintln(d.Out, sum)
	return sum, nil
}

// open prepares everything but the workers.
func (d *demo) open() (err error) {
	if d.dir, err = os.MkdirTemp("", "redlatch-demo-"); err != nil {
		return err
	}
	d.records = filepath.Join(d.dir, "records")
	if d.recorder, err = openRecorder(d.records); err != nil {
		return err
	}
	if d.oracle, err = openOracle(d.records); err != nil {
		return err
	}
	d.server = miniredis.NewMiniRedis()
	d.server.ClockTTL(true)
	if err := d.server.Start(); err != nil {
		return err
	}
	if d.Terminal != nil {
		d.board = newBoard(d.Workers, nil)
		d.view = openView(d.Options, d.picture())
		return nil
	}
	d.board = newBoard(d.Workers, func(line string) {
		if _, err := fmt.Fprintln(d.Out, line); err != nil {
			d.fail(err)
		}
	})
	return nil
}

// fail ends the demo early.
func (d *demo) fail(err error) {
	select {
	case d.broken <- err:
	default: // one is enough
	}
}

// close ends what is left and removes the records.
func (d *demo) close() {
	for _, p := range d.processes {
		p.kill()
		p.proxy.Close()
	}
	if d.server != nil {
		d.server.Close()
	}
	if d.oracle != nil {
		_ = d.oracle.close()
	}
	if d.recorder != nil {
		_ = d.recorder.close()
	}
	_ = os.RemoveAll(d.dir)
}

func (d *demo) run(signals <-chan os.Signal) (sum Summary, err error) {
	if err := d.open(); err != nil {
		return sum, err
	}
	if d.view != nil {
		defer d.view.close()
	}
	d.board.say("an embedded server on %s; %d worker processes; one lock", d.server.Addr(), d.Workers)
	d.board.say("the watchdog is %v: leases of %[1]v, renewed every %v", d.Watchdog, (d.Watchdog / 3).Round(time.Millisecond))
	for id := 1; id <= d.Workers; id++ {
		p, err := d.startProcess(id)
		if err != nil {
			return sum, fmt.Errorf("starting worker %d: %w", id, err)
		}
		d.processes = append(d.processes, p)
	}

	ctx, cancel := context.WithCancel(context.Background())
	told := make(chan error, 1)
	go func() { told <- d.story(ctx) }()
	sum.Signal, err = d.watch(signals, told)
	cancel()
	// The story has taken its last step, and owns the processes no more.
	if failed := <-told; err == nil && failed != nil && !errors.Is(failed, context.Canceled) {
		err = failed
	}
	if err != nil {
		return sum, err
	}
	if err := d.stop(); err != nil {
		return sum, err
	}
	sum.Acquisitions, sum.Violations = d.oracle.entered, len(d.oracle.overlaps)
	sum.Losses = d.board.snapshot().losses
	return sum, nil
}

// watch shows what happens until the demo is over. It leaves the story's end in
// told.
func (d *demo) watch(signals <-chan os.Signal, told chan error) (os.Signal, error) {
	frame, viewEnded := 2*time.Second, (<-chan struct{})(nil)
	if d.view != nil {
		frame, viewEnded = 80*time.Millisecond, d.view.done
	}
	ticker := time.NewTicker(frame)
	defer ticker.Stop()
	enough, most := time.After(d.Length), time.After(d.Length+d.grace())
	ended := told
	over, complete := false, d.Length < d.whole() // a short demo leaves things out
	for !over || !complete {
		select {
		case err := <-ended:
			told <- err
			if err != nil {
				return nil, err
			}
			ended, complete = nil, true
		case <-enough:
			over = true
		case <-most:
			d.board.say("this machine is too slow to tell the whole story in time")
			return nil, nil
		case err := <-d.broken:
			return nil, err
		case sig := <-signals:
			return sig, nil
		case <-viewEnded:
			return nil, d.view.err
		case <-ticker.C:
			if err := d.show(); err != nil {
				return nil, err
			}
		}
	}
	return nil, nil
}

// show brings the view up to date, or says a line about how things are.
func (d *demo) show() error {
	if err := d.oracle.read(); err != nil {
		return err
	}
	if d.view != nil {
		d.view.show(d.picture())
		return nil
	}
	s := d.board.snapshot()
	d.board.say("%s", s.line(len(d.oracle.overlaps)))
	return nil
}

func (d *demo) picture() picture {
	return picture{snapshot: d.board.snapshot(), watchdog: d.Watchdog, ttl: d.server.TTL(lockName), overlaps: len(d.oracle.overlaps)}
}

// stop lets the workers finish, and judges their last records.
func (d *demo) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	for _, p := range d.processes {
		p.proxy.Blackhole(false)
		p.proxy.BreakAll()
		p.dismiss()
	}
	for _, p := range d.processes {
		if p.ended(ctx) {
			continue
		}
		p.kill()
		if err := d.recorder.write(time.Now(), p.pid, p.id, died); err != nil {
			return err
		}
	}
	return d.oracle.read()
}
