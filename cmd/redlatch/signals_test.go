//go:build unix

package main

import (
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/redlatch/redlatch/internal/overview"
)

// A signal ends a wait at once, and leaves nothing behind for which others would
// wait.
func TestSignalsEndWaits(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	for _, args := range [][]string{
		{"semaphore", "set", "--expirable", "permits", "1"},
		{"semaphore", "acquire", "permits", "--lease", "1h"},
		{"rate", "set", "api", "1/1h"},
		{"rate", "take", "api"},
		{"latch", "set", "workers", "1"},
	} {
		if res := r.run(t, args...); res.code != 0 {
			t.Fatalf("%q: %+v", args, res)
		}
	}
	for _, args := range [][]string{
		{"semaphore", "acquire", "permits", "--lease", "1h"},
		{"rate", "take", "api"},
		{"latch", "wait", "workers"},
		{"barrier", "wait", "gate", "2"},
	} {
		t.Run(args[0], func(t *testing.T) {
			t.Parallel()
			for _, sig := range []syscall.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP} {
				j := start(t, r.command(args...))
				r.waitFor(t, j, args[2])
				j.signal(sig)
				if code := j.wait(); code != 128+int(sig) || j.output() != "" {
					t.Errorf("%v: exit %d: %s", sig, code, j.output())
				}
			}
		})
	}
}

// waitFor waits until a program says that it waits for something.
func (r *redis) waitFor(t *testing.T, j *job, name string) {
	t.Helper()
	eventually(t, "it waits", func() bool {
		return len(document[overview.Lock](t, r.asked(t, "show", name, "-o", "json")).Waiting) > 0
	}, j.output)
}

// One that a signal ends breaks the barrier for the others at once, and not when
// it is taken for dead.
func TestSignalBreaksBarrier(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	leaves := start(t, r.command("barrier", "wait", "gate", "3"))
	r.waitFor(t, leaves, "gate")
	stays := start(t, r.command("barrier", "wait", "gate", "3"))
	eventually(t, "both are there", func() bool {
		return r.HGet("redlatch_barrier:{gate}:"+r.HGet("redlatch_barrier:{gate}", "generation"), "arrived") == "2"
	})
	began := time.Now()
	leaves.signal(unix.SIGTERM)
	leaves.ends(143)
	stays.ends(1)
	if d := time.Since(began); d > 15*time.Second {
		t.Errorf("it learned of it after %v", d)
	}
}

// nohup: a signal that was ignored stays ignored.
func TestWaitsKeepIgnoredSignals(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	if res := r.run(t, "latch", "set", "workers", "1"); res.code != 0 {
		t.Fatalf("%+v", res)
	}
	cmd := r.command()
	exe := cmd.Path
	cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", `trap '' HUP; exec "$0" latch wait workers`, exe}
	j := start(t, cmd)
	r.waitFor(t, j, "workers")
	j.signal(os.Signal(unix.SIGHUP))
	if res := r.run(t, "latch", "down", "workers"); res.code != 0 {
		t.Fatalf("%+v", res)
	}
	j.ends(0)
}

// What shows something until it is told to end ends in order, whoever tells it:
// QUIT printed the stacks of its goroutines.
func TestSignalsEndWhatShowsLocks(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	r.hold("orders", time.Hour)
	for _, sig := range []syscall.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT} {
		serving, _ := r.serve(t)
		listing := start(t, r.command("ls", "--watch"))
		listing.says("\norders ")
		for _, j := range []*job{serving, listing} {
			j.signal(sig)
			j.ends(0)
		}
	}
}

// nohup: what shows something goes on when its terminal is gone.
func TestWhatShowsLocksKeepsIgnoredSignals(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	r.hold("orders", time.Hour)
	ignoring := func(args ...string) *job {
		cmd := r.command()
		cmd.Path, cmd.Args = "/bin/sh", append([]string{"sh", "-c", `trap '' HUP; exec "$0" "$@"`, cmd.Path}, args...)
		return start(t, cmd)
	}
	serving := ignoring("serve", "--listen", "127.0.0.1:0", "--interval", "1s")
	eventually(t, "an address", func() bool { return served.MatchString(serving.output()) }, serving.output)
	listing := ignoring("ls", "--watch", "--interval", "1s")
	listing.says("\norders ")
	serving.signal(unix.SIGHUP)
	listing.signal(unix.SIGHUP)
	r.hold("stock", time.Hour)
	listing.says("\nstock ")
	eventually(t, "it goes on", func() bool {
		_, text := fetch(t, served.FindString(serving.output()), "")
		return strings.Contains(text, "stock")
	}, serving.output)
}

// Whoever waits at a barrier is stored and says so itself, and is one.
func TestWhoWaitsAtABarrierIsOne(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	j := start(t, r.command("barrier", "wait", "gate", "2"))
	r.waitFor(t, j, "gate")
	if res := r.asked(t, "show", "gate"); strings.Count(res.out, "waiter ") != 1 || strings.Count(res.out, ", for ") != 1 {
		t.Errorf("%+v", res)
	}
	if res := r.asked(t, "ls"); !regexp.MustCompile(`gate +barrier, 1 of 2 here +- +- +- +\S+ +1 `).MatchString(res.out) {
		t.Errorf("%+v", res)
	}
}
