package main

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The command is told of its own lock, once, and of none that redlatch itself runs
// under: a program that reads the first of two variables would have the wrong one.
func TestRunTellsOfNoOtherLock(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	cmd := r.command("run", "x", "-c", `tr '\0' '\n' </proc/$$/environ | grep ^REDLATCH_ | grep -v ^REDLATCH_URL=`)
	other := []string{"REDLATCH_TOKEN=3", "REDLATCH_NAME=other", "REDLATCH_OWNER=other", "REDLATCH_LEASE_MS=1", "REDLATCH_HELD=no"}
	cmd.Env = slices.Concat(other, cmd.Env, other)
	res := finish(t, cmd)
	for _, v := range other {
		name, _, _ := strings.Cut(v, "=")
		want := 1
		if name == "REDLATCH_TOKEN" {
			want = 0
		}
		if n := strings.Count("\n"+res.out, "\n"+name+"="); n != want || strings.Contains(res.out, v+"\n") {
			t.Errorf("%s %d times, want %d:\n%s", name, n, want, res.out)
		}
	}
}

// zombies counts the children of a program that have ended and that it has not
// taken note of.
func zombies(t *testing.T, j *job) (n int) {
	t.Helper()
	processes, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range processes {
		stat, _ := os.ReadFile(p) // none: it has gone
		if _, rest, _ := strings.Cut(string(stat), ") "); strings.HasPrefix(rest, "Z "+strconv.Itoa(j.cmd.Process.Pid)+" ") {
			n++
		}
	}
	return n
}

// Of jobs that a command detaches none is left when it has ended, or a long
// command would fill the table of processes: neither in the group nor out of it,
// neither while the command runs nor while redlatch is a candidate again.
func TestDetachedJobsLeaveNoZombies(t *testing.T) {
	long(t)
	t.Parallel()
	const detach = `n=0; while [ $n -lt 100 ]; do n=$((n+1)); (setsid cat /dev/null &) ; (cat /dev/null &); done; echo ready; `
	none := func(t *testing.T, j *job) {
		t.Helper()
		j.says("ready")
		eventually(t, "no zombies", func() bool { return zombies(t, j) == 0 }, func() string { return strconv.Itoa(zombies(t, j)) })
	}
	t.Run("while the command runs", func(t *testing.T) {
		t.Parallel()
		r := newRedis(t)
		j := start(t, r.command("run", "x", "-c", detach+"trap 'exit 7' TERM; while :; do sleep 0.02; done"))
		none(t, j)
		j.signal(unix.SIGTERM)
		j.ends(7)
	})
	t.Run("while it has ended, and its group has not", func(t *testing.T) {
		t.Parallel()
		r := newRedis(t)
		j := start(t, r.command("run", "x", "-c", "(trap 'exit 0' TERM; sleep 0.1; "+detach+"while :; do sleep 0.02; done) & exit 7"))
		none(t, j)
		j.signal(unix.SIGTERM)
		j.ends(7)
	})
	t.Run("while another leads", func(t *testing.T) {
		t.Parallel()
		r := newRedis(t)
		config := writeFile(t, "redisson.yaml", "singleServerConfig: {address: 'redis://"+r.Addr()+"'}\npassword: "+password+"\nlockWatchdogTimeout: 3000\nprotocol: RESP2\nthreads: 3")
		work := writeFile(t, "work", "")
		cmd := r.command("elect", "x", "--config", config, "--kill-after", "0", "-c", `for n in 1 2 3 4 5; do (setsid sh -c 'while [ -e $WORK ]; do sleep 0.1; done; echo gone' &) ; done; echo ready; while :; do sleep 0.02; done`)
		cmd.Env = append(cmd.Env, "WORK="+work)
		j := start(t, cmd)
		j.says("ready")
		r.Del("x")
		r.hold("x", time.Hour)
		j.says("killing the command")
		if err := os.Remove(work); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the jobs' end", func() bool { return strings.Count(j.output(), "gone") == 5 }, j.output)
		none(t, j)
	})
}

// A daemon leaves the group, and the lock is released without it: also if it was
// the last one there, and left after the command had ended.
func TestRunDoesNotWaitForADaemon(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	dir := t.TempDir()
	leave, pid := filepath.Join(dir, "leave"), filepath.Join(dir, "pid")
	cmd := r.command("run", "x", "-c", `(while ! [ -e $LEAVE ]; do sleep 0.02; done; exec setsid sh -c 'echo $$ >$PID; exec sleep 600' >/dev/null 2>&1) & exit 3`)
	cmd.Env = append(cmd.Env, "LEAVE="+leave, "PID="+pid)
	j := start(t, cmd)
	j.says("are running; the lock is held until they end")
	if err := os.WriteFile(leave, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	j.ends(3)
	r.isFree(t, "x")
	for range 1000 { // it leaves first, and says who it is then
		if text, _ := os.ReadFile(pid); strings.HasSuffix(string(text), "\n") {
			n, err := strconv.Atoi(strings.TrimSpace(string(text)))
			if err == nil {
				err = unix.Kill(n, unix.SIGKILL)
			}
			if err != nil {
				t.Errorf("the daemon: %v", err)
			}
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("there is no daemon")
}
