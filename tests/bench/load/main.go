// Command load puts one load on redlatch and says what it cost. `bench -base`
// builds it twice, with redlatch as it is and as it was, so it uses only what
// both have: the public interface, and no code of ours beside it.
//
//	load                              lists the loads
//	load NAME ADDR WARM_UP LENGTH     answers with a [cost], as JSON
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		for _, l := range loads {
			fmt.Println(l.name)
		}
		return nil
	}
	if len(args) != 4 {
		return errors.New("usage: load NAME ADDR WARM_UP LENGTH")
	}
	warm, err := time.ParseDuration(args[2])
	if err != nil {
		return err
	}
	length, err := time.ParseDuration(args[3])
	if err != nil {
		return err
	}
	for _, l := range loads {
		if l.name == args[0] {
			c, err := l.measure(args[1], warm, length)
			if err != nil {
				return err
			}
			return json.NewEncoder(os.Stdout).Encode(c)
		}
	}
	return fmt.Errorf("no load %q", args[0])
}

// A cost is what a load took between the end of the warm-up and the end.
type cost struct {
	Operations int64         `json:"operations"`
	CPU        time.Duration `json:"cpu"` // of this process, user and system
	Elapsed    time.Duration `json:"elapsed"`
}

// An operation is what a goroutine does again and again.
type operation func(ctx context.Context) error

// A runner is a goroutine with its operation.
type runner struct {
	operation operation
	done      atomic.Int64
	_         [64]byte // not in one cache line with the next
}

func (l load) measure(addr string, warm, length time.Duration) (cost, error) {
	client, err := l.adapter(addr)
	if err != nil {
		return cost{}, err
	}
	defer client.close()
	runners := make([]runner, l.goroutines)
	for g := range runners {
		if runners[g].operation, err = l.prepare(client.Client, g); err != nil {
			return cost{}, err
		}
	}
	var stopping atomic.Bool
	failed := make(chan error, len(runners))
	var running sync.WaitGroup
	for g := range runners {
		running.Go(func() {
			r := &runners[g]
			ctx, cancel := context.WithCancel(context.Background()) // one that can end, as those of real callers
			defer cancel()
			for !stopping.Load() {
				if err := r.operation(ctx); err != nil {
					failed <- err
					return
				}
				r.done.Add(1)
			}
		})
	}
	time.Sleep(warm)
	runtime.GC() // so that each measurement begins in the same phase
	before := soFar(runners)
	select {
	case err := <-failed:
		return cost{}, err
	case <-time.After(length):
	}
	after := soFar(runners)
	stopping.Store(true)
	running.Wait() // whoever waits gets what it waits for
	if len(failed) > 0 {
		return cost{}, <-failed
	}
	return cost{after.Operations - before.Operations, after.CPU - before.CPU, after.Elapsed - before.Elapsed}, nil
}

var start = time.Now()

// soFar is what the process has done, and used, since it began.
func soFar(runners []runner) cost {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used) // cannot fail for the process itself
	c := cost{CPU: time.Duration(used.Utime.Nano() + used.Stime.Nano()), Elapsed: time.Since(start)}
	for g := range runners {
		c.Operations += runners[g].done.Load()
	}
	return c
}
