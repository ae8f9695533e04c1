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

// A daemon leaves the group, and the lock is released without it: also if it was the
// last one there, and left after the command had ended.
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
