package campaign

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/tests/interop/peer"
	"github.com/redlatch/redlatch/tests/sim"
)

const (
	// rivalWatchdog is longer than any lease of ours: what is said of readers in
	// docs/guarantees.md demands it.
	rivalWatchdog = 10 * time.Second
	rivalPatience = time.Second
	rivalLease    = 4 * time.Second
	rivalCall     = 30 * time.Second // Redisson repeats what is not answered

	firstRival = 1_000_000 // number of a process
)

// rivals returns the types that a process of Redisson plays beside ours.
func rivals(topology string) []string {
	if topology == "Cluster" { // what a reader of Redisson keeps is not always where its slot is
		return []string{"lock", "fair"}
	}
	return []string{"lock", "fair", "readwrite"}
}

// A redisson is a process of Redisson, and then another one.
type redisson struct {
	c       *campaign
	options peer.Options
	chance  *rand.Rand // of what its workers do
	quit    atomic.Bool

	peer    *peer.Peer
	workers sync.WaitGroup
	born    int
}

// enlist begins a process of Redisson, which has no ways of its own: it is killed,
// and stands still. Where there is no Java, it leaves the play out and says so.
// What is proven before a release needs it.
func (c *campaign) enlist() *redisson {
	c.Helper()
	r := &redisson{c: c, chance: rand.New(rand.NewPCG(c.seed, c.chance.Uint64())), options: peer.Options{ //nolint:gosec // it has to be the same each time
		Watchdog: rivalWatchdog, Timeout: rivalPatience, Idle: workers,
	}}
	switch {
	case c.role.Cluster:
		r.options.Cluster = c.role.Addrs
	case c.role.Master != "":
		r.options.Sentinels, r.options.Master = c.role.Addrs, c.role.Master
	default:
		r.options.Addr = c.role.Addrs[0]
	}
	if err := r.begin(); err != nil {
		if os.Getenv("REDLATCH_PROOF") != "" {
			c.Fatal(err)
		}
		fmt.Printf("\nCHOSEN: %s is left out: %v\n", c.Name(), err)
		c.Skip(err)
	}
	c.Cleanup(r.end) // also if the play does not get to its end
	return r
}

func (r *redisson) begin() error {
	p, err := peer.Start(peer.Newest, io.Discard) // it complains about all that goes wrong
	if err != nil {
		return err
	}
	r.peer = p
	process, seed := firstRival+r.born, r.chance.Uint64()
	r.born++
	r.workers.Go(func() {
		for !r.quit.Load() { // the servers may be down
			ctx, cancel := context.WithTimeout(context.Background(), rivalCall)
			client, err := p.Open(ctx, r.options)
			cancel()
			if errors.Is(err, peer.ErrEnded) {
				return
			}
			if err != nil {
				time.Sleep(100 * time.Millisecond)
				continue
			}
			for n := range workers {
				w := rival{redisson: r, thread: client.Thread(fmt.Sprint("t", n)), process: process, number: n, kept: map[string]time.Duration{}}
				w.chance = rand.New(rand.NewPCG(seed, uint64(n))) //nolint:gosec // no secret
				r.workers.Go(w.work)
			}
			return
		}
	})
	return nil
}

func (r *redisson) end() {
	r.peer.Kill()
	r.workers.Wait()
}

// kill ends it, and begins another one.
func (r *redisson) kill() {
	r.end()
	if err := r.begin(); err != nil {
		r.c.Error(err)
	}
}

func (r *redisson) stall(d time.Duration) {
	if err := errors.Join(r.peer.Pause(), wait(d), r.peer.Resume()); err != nil {
		r.c.Error(err)
	}
}

func wait(d time.Duration) error {
	time.Sleep(d)
	return nil
}

// stop lets its workers end what they do, as ours do, and ends it.
func (r *redisson) stop() {
	r.quit.Store(true)
	r.workers.Wait()
	r.peer.Close()
}

// A rival is a thread of Redisson that does what our workers do.
type rival struct {
	*redisson

	thread          peer.Thread
	process, number int
	nth             int
	chance          *rand.Rand

	kept map[string]time.Duration // by object: the lease of what the thread may have of it still, from before
}

func (w *rival) work() {
	for !w.quit.Load() {
		time.Sleep(upTo(w.chance, 60*time.Millisecond))
		if err := w.once(); errors.Is(err, peer.ErrEnded) {
			return
		}
	}
}

// once locks and unlocks once. That Redisson fails, or waits for too long, is no
// matter.
func (w *rival) once() error {
	ctx, cancel := context.WithTimeout(context.Background(), rivalCall)
	defer cancel()
	name, kind, weight := sim.Object(w.chance.IntN(2)), peer.Plain, sim.Whole(w.c.typ)
	var lease time.Duration
	lasts := rivalWatchdog
	if w.chance.IntN(2) == 0 {
		lease = 200*time.Millisecond + upTo(w.chance, rivalLease)
		lasts = lease
	}
	switch w.c.typ {
	case "fair":
		kind = peer.Fair
	case "readwrite":
		if kind = peer.Write; w.chance.IntN(3) != 0 {
			kind, weight = peer.Read, 1
		}
		lease, lasts = 0, rivalWatchdog // one of its readers that unlocks may make another's lease shorter
	}
	w.kept[name] = max(lasts, w.kept[name])
	l, call := w.thread.Lock(kind, name), now()
	ok, err := l.TryLock(ctx, upTo(w.chance, 2*time.Second), lease)
	if ok {
		w.hold(ctx, l, name, weight, call, w.kept[name])
	}
	for range 10 { // a request that was executed twice counts twice
		held, asked := l.IsHeld(ctx)
		if err = errors.Join(err, asked); asked != nil {
			break
		}
		if !held {
			if err == nil { // else a request may come late
				delete(w.kept, name)
			}
			break
		}
		err = errors.Join(err, l.Unlock(ctx))
	}
	return err
}

// hold asks the server again and again. What the thread had when that was
// executed, it had when it was sent, too.
func (w *rival) hold(ctx context.Context, l peer.Lock, name string, weight int, call, lease time.Duration) {
	d := upTo(w.chance, 40*time.Millisecond)
	if w.chance.IntN(10) == 0 {
		d = upTo(w.chance, 6*time.Second)
	}
	w.nth++
	line := sim.Line{
		Process: w.process, Number: w.number*1_000_000 + w.nth, Nest: (1000*w.process+w.number)*1_000_000 + w.nth,
		Resource: name, ID: fmt.Sprintf("Redisson %d.%d.%d", w.process, w.number, w.nth), Weight: weight, Lease: lease, Call: call, From: now(),
	}
	for until := line.From + d; ; time.Sleep(5 * time.Millisecond) {
		asked := now()
		if held, err := l.IsHeld(ctx); err != nil || !held {
			return
		}
		line.To = asked
		w.c.note(line)
		if asked >= until {
			return
		}
	}
}
