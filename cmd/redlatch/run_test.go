//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/redlatch/redlatch/internal/heldport"
	"github.com/redlatch/redlatch/internal/overview"
)

// The environment: who holds what, as Redis shows it.
func TestRunTellsTheCommandOfItsLock(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	j := start(t, r.command("run", "{a}:b c", "--", "sh", "-c", "env; sleep 60"))
	j.says("REDLATCH_LEASE_MS=30000\n")
	owner, err := r.HKeys("{a}:b c")
	if err != nil || len(owner) != 1 {
		t.Fatal(owner, err)
	}
	contains(t, strings.ReplaceAll(j.output(), password, "***"), "REDLATCH_HELD=true\n", "REDLATCH_NAME={a}:b c\n", "REDLATCH_OWNER="+owner[0]+"\n")
	if ttl := r.TTL("{a}:b c"); ttl < 10*time.Second || ttl > 30*time.Second {
		t.Errorf("TTL %v without --lease", ttl)
	}
	j.forget()
}

// All of several locks, or none: what the command is told, and what is held
// meanwhile.
func TestRunMulti(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	j := start(t, r.command("run", "--multi", "b,a", "--lease", "1h", "-c", "trap 'exit 6' USR1; echo $REDLATCH_NAME $REDLATCH_OWNER ready; while :; do sleep 0.02; done"))
	j.says("ready")
	var owners []string
	for _, name := range []string{"b", "a"} {
		fields, err := r.HKeys(name)
		if err != nil || len(fields) != 1 {
			t.Fatal(fields, err)
		}
		owners = append(owners, fields...)
	}
	contains(t, j.output(), "b,a "+strings.Join(owners, ",")+" ready")
	if res := r.run(t, "run", "--multi", "c,a", "--try", "-E", "9", "--", "echo", "ran"); res.code != 9 || res.out != "" || r.Exists("c") {
		t.Errorf("%+v", res)
	}
	j.signal(unix.SIGUSR1)
	if code := j.wait(); code != 6 || r.Exists("a") || r.Exists("b") {
		t.Errorf("exit %d: %s; keys %v", code, j.output(), r.Keys())
	}
	j = start(t, r.command("run", "--multi", "a,b", "-c", "echo ready; while :; do sleep 0.02; done"))
	j.says("ready")
	if res := r.run(t, "release", "--force", "b"); res.code != 0 {
		t.Errorf("%+v", res)
	}
	if code := j.wait(); code != 74 || r.Exists("a") {
		t.Errorf("exit %d: %s; keys %v", code, j.output(), r.Keys())
	}
}

// wait is a script that says when it is ready, and ends when it is told to.
const wait = "trap 'exit 6' USR1; echo ready; while :; do sleep 0.02; done"

// Readers together, a writer alone; as ls and show see them.
func TestRunSharedAndExclusive(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	a := start(t, r.command("run", "x", "--shared", "-c", wait))
	b := start(t, r.command("run", "x", "--shared", "-c", wait))
	a.says("ready")
	b.says("ready")
	if got := document[overview.Lock](t, r.asked(t, "show", "x", "-o", "json")); got.Kind != "read-write lock" || len(got.Holders) != 2 || got.Holders[0].Mode != "read" {
		t.Errorf("%+v", got)
	}
	if res := r.run(t, "run", "x", "--exclusive", "--try", "-c", "echo ran"); res.code != 1 || res.out != "" {
		t.Errorf("%+v", res)
	}
	w := start(t, r.command("run", "x", "--exclusive", "--fenced", "-c", "echo $REDLATCH_TOKEN; "+wait))
	a.signal(unix.SIGUSR1)
	b.signal(unix.SIGUSR1)
	w.says("1\nready")
	if res := r.run(t, "run", "x", "--shared", "--try", "-c", "echo ran"); res.code != 1 || res.out != "" {
		t.Errorf("%+v", res)
	}
	for _, j := range []*job{a, b} {
		j.ends(6)
	}
	if res := r.run(t, "release", "--force", "x"); res.code != 0 || res.out != "x released\n" || r.Exists("x") {
		t.Errorf("%+v", res)
	}
	w.ends(74)
}

// Whatever type of lock is held has the lease that was asked for.
func TestRunHoldsEveryTypeWithItsLease(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	for i, flags := range [][]string{nil, {"--fair"}, {"--shared"}, {"--exclusive"}, {"--spin"}, {"--fenced"}, {"--group", "1,2"}} {
		name := fmt.Sprintf("x%d", i)
		j := start(t, r.command(slices.Concat([]string{"run", name, "--lease", "10m"}, flags, []string{"-c", wait})...))
		j.says("ready")
		if ttl := r.TTL(name); ttl < 9*time.Minute {
			t.Errorf("%q: a TTL of %v", flags, ttl)
		}
		j.signal(unix.SIGUSR1)
		j.ends(6)
	}
}

// A queue in Redis, as ls and show see it, which whoever leaves leaves.
func TestRunFair(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	r.hold("x", time.Hour)
	j := start(t, r.command("run", "x", "--fair", "-c", "echo ran"))
	queued := func() int {
		list, _ := r.List("redisson_lock_queue:{x}")
		return len(list)
	}
	eventually(t, "it queues", func() bool { return queued() == 1 }, j.output)
	got := document[overview.Lock](t, r.asked(t, "show", "x", "-o", "json"))
	if got.Kind != "fair lock" || len(got.Queue) != 1 || !got.Queue[0].Redlatch {
		t.Errorf("%+v", got)
	}
	k := start(t, r.command("run", "x", "--fair", "-c", "echo ran"))
	eventually(t, "another one queues", func() bool { return queued() == 2 }, k.output)
	k.signal(unix.SIGTERM)
	if code := k.wait(); code != 143 || queued() != 1 {
		t.Errorf("exit %d: %s; %d in the queue", code, k.output(), queued())
	}
	r.Del("x")
	if code := j.wait(); code != 0 || j.output() != "ran\n" {
		t.Errorf("exit %d: %s", code, j.output())
	}
}

// A spinner subscribes to nothing, and sees a lock freed without a message.
func TestRunSpins(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	r.hold("x", time.Hour)
	if res := r.run(t, "run", "x", "--spin", "--wait", "3s", "-c", "echo ran"); res.code != 1 || res.out != "" {
		t.Errorf("%+v", res)
	}
	j := start(t, r.command("run", "x", "--spin", "--wait", "1h", "-c", "echo ran"))
	tries := r.CommandCount()
	eventually(t, "it tries", func() bool { return r.CommandCount() > tries+20 }, j.output)
	if channels := r.PubSubChannels("*{x}"); len(channels) > 0 {
		t.Errorf("subscribed to %q", channels)
	}
	r.Del("x")
	if code := j.wait(); code != 0 || j.output() != "ran\n" {
		t.Errorf("exit %d: %s", code, j.output())
	}
}

// shell runs a script with sh, in which $R is the program.
func (r *redis) shell(flags, script string) *exec.Cmd {
	cmd := r.command()
	exe := cmd.Path
	cmd.Path = "/bin/sh"
	cmd.Args = []string{"sh", flags, script}
	if flags == "" {
		cmd.Args = []string{"sh", "-i"}
	}
	cmd.Env = append(cmd.Env, "R="+exe, "PS1=prompt> ", "ENV=", "HISTFILE=")
	return cmd
}

// Who closes standard output would not see the owner, and nobody could release the
// lock. To throw the owner away is another matter.
func TestAcquireTakesNothingThatNobodyCanRelease(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	for line, held := range map[string]bool{
		`"$R" acquire x --lease 1h >&-`:                         false,
		`"$R" acquire x --lease 1h -o json >&-`:                 false,
		`"$R" semaphore acquire x --of 2 --lease 1h >&-`:        false,
		`"$R" acquire y --lease 1h >/dev/null`:                  true,
		`"$R" semaphore acquire z --of 2 --lease 1h >/dev/null`: true,
	} {
		res := finish(t, r.shell("-c", line))
		if code := map[bool]int{false: 71, true: 0}[held]; res.code != code || !held && !strings.Contains(res.err, "standard output is closed") {
			t.Errorf("%s: %+v", line, res)
		}
	}
	if keys := r.Keys(); slices.Contains(keys, "x") || !slices.Contains(keys, "y") || !slices.Contains(keys, "z") {
		t.Errorf("%q", keys)
	}
}

// forget drops what was said: it has been looked at, with the password that the
// test put there.
func (j *job) forget() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.text.Reset()
}

// Whoever waits gets the lock when it is free, and not when its TTL is over.
func TestRunWaits(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	first := start(t, r.command("run", "x", "-c", "trap 'exit 0' USR1; echo ready; while :; do sleep 0.02; done"))
	first.says("ready")
	second := start(t, r.command("run", "x", "--wait", "1h", "-c", "echo second"))
	eventually(t, "second waits", func() bool { return len(r.PubSubChannels("*{x}")) == 1 }, second.output)
	first.signal(unix.SIGUSR1)
	if code := second.wait(); code != 0 || second.output() != "second\n" {
		t.Errorf("exit %d: %s", code, second.output())
	}
	first.ends(0)
}

// It would wait until its own end. A reader beside a reader, or who only tries,
// does not.
func TestRunRefusesToWaitForItself(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	inner := func(outer, inner string) result {
		cmd := r.shell("-c", `"$R" run `+outer+` -- "$R" run y -- "$R" run `+inner)
		return finish(t, cmd)
	}
	for _, again := range []string{"x -- true", "--multi a,x -- true", "x --wait 1h -- true"} {
		if res := inner("x", again); res.code != 64 || !strings.Contains(res.err, "this command runs under the lock x already") {
			t.Errorf("run x -- run y -- run %s: %+v", again, res)
		}
	}
	if res := inner("--shared x", "--exclusive x -- true"); res.code != 64 {
		t.Errorf("a writer under itself as a reader: %+v", res)
	}
	if res := inner("--shared x", "--shared x -- echo beside"); res.code != 0 || res.out != "beside\n" {
		t.Errorf("a reader under itself: %+v", res)
	}
	if res := inner("--group 12,13 seats", "--group 13,14 seats -- true"); res.code != 64 {
		t.Errorf("values under themselves: %+v", res)
	}
	if res := inner("--group 12,13 seats", "--group 14 seats -- echo beside"); res.code != 0 || res.out != "beside\n" {
		t.Errorf("a value under others of its group: %+v", res)
	}
	if res := inner("x", "x --try -- true"); res.code != 1 {
		t.Errorf("a try: %+v", res)
	}
	cmd := r.command("run", "x", "--", "echo", "free")
	cmd.Env = append(cmd.Env, "REDLATCH_UNDER="+holder) // which has it no longer
	if res := finish(t, cmd); res.code != 0 || res.out != "free\n" {
		t.Errorf("under a lock that is over: %+v", res)
	}
}

// For run an outage is a kind of waiting.
func TestRunServerUnreachable(t *testing.T) {
	long(t)
	t.Parallel()
	addr := heldport.Refusing(t)
	nowhere := &redis{nil, "redis://annabel:" + password + "@" + addr}
	res := nowhere.run(t, "run", "x", "--wait", "1h", "--", "true")
	if res.code != 69 || !strings.Contains(res.err, addr) || strings.Contains(res.err, "annabel") {
		t.Errorf("unreachable: %+v", res)
	}
}

// What a command asks before it waits is part of the wait.
func TestWaitBoundsAnOutage(t *testing.T) {
	t.Parallel()
	nowhere := &redis{nil, "redis://" + heldport.Refusing(t)}
	for _, line := range []string{
		"run x -- true", "run x --permits 1/2 -- true", "acquire x --lease 1m", "semaphore acquire x --lease 1m", "rate take x", "latch wait x", "barrier wait x 2",
	} {
		before, behind, _ := strings.Cut(line, " -- ")
		args := append(strings.Fields(before), "--wait", "100ms", "--outage", "1h")
		if behind != "" {
			args = append(args, "--", behind)
		}
		if res := nowhere.run(t, args...); res.code != 69 || !strings.Contains(res.err, "server unavailable") {
			t.Errorf("%s: %+v", line, res)
		}
	}
}

// A script that says its name and how it was ended: for HUP "HUP".
func trapping(signal string) string {
	return fmt.Sprintf("trap 'echo got %s; exit 7' %[1]s; echo ready; while :; do sleep 0.02; done", signal)
}

func TestRunForwardsSignals(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	for name, sig := range map[string]syscall.Signal{
		"HUP": unix.SIGHUP, "INT": unix.SIGINT, "QUIT": unix.SIGQUIT, "TERM": unix.SIGTERM, "USR1": unix.SIGUSR1,
		"USR2": unix.SIGUSR2, "WINCH": unix.SIGWINCH, "CONT": unix.SIGCONT,
	} {
		t.Run(name, func(t *testing.T) {
			j := start(t, r.command("run", name, "-c", trapping(name)))
			j.says("ready")
			j.signal(sig)
			if code := j.wait(); code != 7 || !strings.Contains(j.output(), "got "+name) {
				t.Errorf("exit %d: %s", code, j.output())
			}
			r.isFree(t, name)
		})
	}
}

// A signal is for everything the command has started.
func TestRunSignalsTheGroup(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	// The inner shell is not the command; the outer one dies of TERM at once.
	inner := "trap 'echo inner ended; exit' TERM; echo ready; while :; do sleep 0.02; done"
	cmd := r.command("run", "y", "-c", "sh -c \"$INNER\" & wait")
	cmd.Env = append(cmd.Env, "INNER="+inner)
	j := start(t, cmd)
	j.says("ready")
	j.signal(unix.SIGTERM)
	j.ends(143)
	contains(t, j.output(), "inner ended")
	r.isFree(t, "y")
}

func TestRunSecondTermKills(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	j := start(t, r.command("run", "x", "-c", "trap 'echo no' TERM; echo ready; while :; do sleep 0.02; done"))
	j.says("ready")
	j.signal(unix.SIGTERM)
	j.says("no")
	j.signal(unix.SIGTERM)
	j.ends(137)
	r.isFree(t, "x")
}

// A signal ends the waiting for the lock, and leaves nothing behind.
func TestRunSignalWhileWaiting(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	r.hold("x", time.Hour)
	for _, sig := range []syscall.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP} {
		j := start(t, r.command("run", "x", "--", "echo", "ran"))
		eventually(t, "subscribed", func() bool { return len(r.PubSubChannels("*{x}")) == 1 }, j.output)
		j.signal(sig)
		if code := j.wait(); code != 128+int(sig) || j.output() != "" {
			t.Errorf("%v: exit %d: %s", sig, code, j.output())
		}
		eventually(t, "unsubscribed", func() bool { return len(r.PubSubChannels("*{x}")) == 0 })
	}
	if keys, _ := r.HKeys("x"); len(keys) != 1 || keys[0] != holder {
		t.Errorf("holders: %v", keys)
	}
}

// nohup: what was ignored stays ignored.
func TestRunKeepsIgnoredSignals(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	cmd := r.command()
	exe := cmd.Path
	cmd.Path, cmd.Args = "/bin/sh", []string{
		"sh", "-c", `trap '' HUP; exec "$0" run x -c "$1"`, exe,
		"echo ready; while ! [ -e $DONE ]; do sleep 0.02; done; echo survived",
	}
	done := filepath.Join(t.TempDir(), "done")
	cmd.Env = append(cmd.Env, "DONE="+done)
	j := start(t, cmd)
	j.says("ready")
	j.signal(unix.SIGHUP)
	if err := os.WriteFile(done, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	j.ends(0)
	contains(t, j.output(), "survived")
}

// The lock is held until the whole group has ended.
func TestRunWaitsForTheGroup(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	done := filepath.Join(t.TempDir(), "done")
	cmd := r.command("run", "x", "-c", "(while ! [ -e $DONE ]; do sleep 0.02; done; echo background ended) & echo pid $!; exit 5")
	cmd.Env = append(cmd.Env, "DONE="+done)
	j := start(t, cmd)
	j.says("are running; the lock is held until they end") // said when the command itself has ended
	if !r.Exists("x") {
		t.Fatal("the lock was released before the group had ended")
	}
	if err := os.WriteFile(done, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	j.ends(5)
	contains(t, j.output(), "background ended")
	r.isFree(t, "x")
}

// Whoever shows what run says may end; the command goes on, and the lock is
// released.
func TestRunOutlivesItsReader(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := r.command("run", "x", "-c", "sleep 3 & exit 4")
	cmd.Stderr = write
	if err := errors.Join(read.Close(), cmd.Start(), write.Close()); err != nil {
		t.Fatal(err)
	}
	// After two seconds it says what it is waiting for.
	if code := exitCode(cmd.Wait()); code != 4 {
		t.Errorf("exit %d", code)
	}
	r.isFree(t, "x")
}

// Whoever runs under a lock does not survive the loss of it.
func TestRunLost(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	lose := func(t *testing.T, j *job, name string) {
		t.Helper()
		j.says("ready")
		owner, err := r.HKeys(name)
		if err != nil || len(owner) != 1 {
			t.Fatal(owner, err)
		}
		client, _, _ := strings.Cut(owner[0], ":")
		eventually(t, "the holder listens", func() bool { return len(r.PubSubChannels("*"+client)) > 0 }, j.output)
		if res := r.run(t, "release", "--force", name); res.code != 0 || res.out != name+" released\n" {
			t.Fatalf("%+v", res)
		}
	}
	t.Run("kill", func(t *testing.T) {
		j := start(t, r.command("run", "x", "--kill-after", "1m", "-c", "trap 'echo got TERM; exit 0' TERM; echo ready; while :; do sleep 0.02; done"))
		lose(t, j, "x")
		j.ends(74)
		contains(t, j.output(), "got TERM", `redlatch: lock "x" lost: it was released by force; ending the command`, "the command ended with 0")
	})
	t.Run("kill the whole group that ignores TERM", func(t *testing.T) {
		j := start(t, r.command("run", "y", "--kill-after", "200ms", "-c",
			"trap '' TERM; sh -c 'echo pid $$; while :; do sleep 0.02; done' & echo ready; wait; while :; do sleep 0.02; done"))
		j.says("pid ")
		lose(t, j, "y")
		j.ends(74)
		contains(t, j.output(), "the command ended with 137")
		noProcess(t, pidOf(t, j.output()))
	})
	t.Run("kill at once", func(t *testing.T) {
		j := start(t, r.command("run", "x", "--kill-after=0", "-c", "trap 'echo got TERM' TERM; echo ready; while :; do sleep 0.02; done"))
		lose(t, j, "x")
		if code := j.wait(); code != 74 || strings.Contains(j.output(), "TERM") || !strings.Contains(j.output(), "; killing the command\n") {
			t.Errorf("exit %d: %s", code, j.output())
		}
	})
	t.Run("warn", func(t *testing.T) {
		j := start(t, r.command("run", "x", "--on-lost", "warn", "-c", "trap 'exit 6' USR1; echo ready; while :; do sleep 0.02; done"))
		lose(t, j, "x")
		j.says("the command goes on")
		j.signal(unix.SIGUSR1)
		j.ends(6)
	})
	t.Run("ignore", func(t *testing.T) {
		j := start(t, r.command("run", "x", "--on-lost", "ignore", "-c", "trap 'exit 6' USR1; echo ready; while :; do sleep 0.02; done"))
		lose(t, j, "x")
		j.signal(unix.SIGUSR1)
		if code := j.wait(); code != 6 || strings.Contains(j.output(), "lost") {
			t.Errorf("exit %d: %s", code, j.output())
		}
	})
	t.Run("noticed at the end", func(t *testing.T) {
		// Deleted by hand, which nobody tells anybody: the release finds out.
		j := start(t, r.command("run", "x", "-c", "trap 'exit 0' USR1; echo ready; while :; do sleep 0.02; done"))
		j.says("ready")
		r.Del("x")
		j.signal(unix.SIGUSR1)
		j.ends(74)
		contains(t, j.output(), "noticed only when the command had ended", "the command ended with 0")
	})
	t.Run("lease over", func(t *testing.T) {
		j := start(t, r.command("run", "x", "--lease", "300ms", "-c", "echo ready; while :; do sleep 0.02; done"))
		j.ends(74)
		contains(t, j.output(), "its Lease was over")
	})
	t.Run("stopped command", func(t *testing.T) {
		j := start(t, r.command("run", "x", "--kill-after", "1m", "-c", "trap 'echo got TERM; exit 0' TERM; echo ready; kill -STOP $$; while :; do sleep 0.02; done"))
		lose(t, j, "x")
		j.ends(74)
		contains(t, j.output(), "got TERM")
	})
}

// The owner that a wait was last refused for may have gone: who has waited is told
// who has the lock now, and not the UUID of somebody whom nobody can find.
func TestATimedOutWaitNamesWhoHasTheLockNow(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	r.hold("x", time.Hour)
	waits := start(t, r.command("run", "x", "--wait", "3s", "--", "true"))
	r.waitFor(t, waits, "x")
	r.Del("x") // without a word: who waits does not hear of it
	start(t, r.command("run", "x", "-c", "echo held; sleep 600")).says("held")
	waits.ends(1)
	if text := waits.output(); !strings.Contains(text, `lock "x" is held by sh@`) {
		t.Error(text)
	}
}

// A redlatch that was stopped for longer than the lease ends its command as soon
// as it is continued.
func TestRunEndsItsCommandAfterItWasStoppedForTooLong(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	j := start(t, r.command("run", "x", "--lease", "1s", "-c", "echo ready; while :; do sleep 0.02; done"))
	j.says("ready")
	j.signal(unix.SIGSTOP)
	eventually(t, "the end of the lease", func() bool { return !r.Exists("x") })
	j.signal(unix.SIGCONT)
	j.ends(74)
}

// A server that is gone when the work is done takes nothing away from it.
func TestRunReleaseFails(t *testing.T) {
	long(t)
	t.Parallel()
	r := newRedis(t)
	j := start(t, r.command("run", "x", "-c", "trap 'exit 6' USR1; echo ready; while :; do sleep 0.02; done"))
	j.says("ready")
	r.Close()
	j.signal(unix.SIGUSR1)
	j.ends(6)
	contains(t, j.output(), `the release of "x" is not confirmed; the lock is free after 30s at the latest`)
}

var pidPattern = regexp.MustCompile(`pid (\d+)`)

func pidOf(t *testing.T, text string) int {
	t.Helper()
	m := pidPattern.FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("no pid in:\n%s", text)
	}
	pid, err := strconv.Atoi(m[1])
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// noProcess waits until the process is gone, or only a zombie that its parent
// has not looked at yet.
func noProcess(t *testing.T, pid int) {
	t.Helper()
	eventually(t, fmt.Sprintf("end of process %d", pid), func() bool {
		if unix.Kill(pid, 0) != nil {
			return true
		}
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err == nil && strings.Contains(string(stat), ") Z ")
	})
}

// When redlatch dies without a word, what runs under its lock dies with it:
// not only the command, but all of its group.
func TestRunDiesWithItsCommand(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	cmd := r.command("run", "x", "-c", "trap : USR1; sh -c \"$INNER\" & while :; do wait; done")
	cmd.Env = append(cmd.Env, "INNER=trap 'echo pid $$' USR1; echo ready; while :; do sleep 0.02; done")
	j := start(t, cmd)
	j.says("ready")
	j.signal(unix.SIGUSR1) // is forwarded: redlatch knows what it has started, and the guard does
	j.says("pid ")
	child := pidOf(t, j.output())
	j.signal(unix.SIGKILL)
	j.wait()
	noProcess(t, child)
}
