package main

import (
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/heldport"
)

// A majority of the servers is enough, and without one the lock cannot be had.
func TestRedLockNeedsAMajority(t *testing.T) {
	t.Parallel()
	a, b, dead := newRedis(t), newRedis(t), "redis://"+heldport.Refusing(t)
	run := func(servers ...string) (int, string) {
		args := []string{"run", "x", "--try", "--outage", "3s", "--redlock", strings.Join(servers, ","), "-c", `echo "$REDLATCH_OWNER"`}
		r := a.run(t, args...)
		return r.code, r.out + r.err
	}
	if code, text := run(a.url, b.url, dead); code != 0 || strings.Count(text, ":") != 2 || strings.Count(text, ",") != 1 {
		t.Errorf("with two of three: %d, %s", code, text)
	}
	if code, text := run(a.url, dead, dead); code != exitUnavailable && code != exitConflict {
		t.Errorf("with one of three: %d, %s", code, text)
	}
	a.hold("x", time.Hour)
	b.hold("x", time.Hour)
	if code, text := run(a.url, b.url, dead); code != exitConflict {
		t.Errorf("held by another: %d, %s", code, text)
	}
}

// A run under a lock of a majority is refused whichever servers the lock is on,
// and one for which the other servers are enough is not.
func TestRedLockDoesNotWaitForItself(t *testing.T) {
	t.Parallel()
	a, b, c := newRedis(t), newRedis(t), newRedis(t)
	c.hold("x", time.Hour)
	run := func() (int, string) {
		cmd := c.command("run", "x", "--redlock", strings.Join([]string{a.url, b.url, c.url}, ","), "--wait", "5s", "-c", "echo ran")
		cmd.Env = append(cmd.Env, underVariable+"="+holder)
		res := finish(t, cmd)
		return res.code, res.out + res.err
	}
	if code, text := run(); code != 0 {
		t.Errorf("it holds one of three: %d, %s", code, text)
	}
	b.hold("x", time.Hour)
	if code, text := run(); code != exitUsage || !strings.Contains(text, "wait for itself") {
		t.Errorf("it holds the last two of three: %d, %s", code, text)
	}
}

// Without a majority it says what is wrong with each server, and that --redlock
// has chosen them.
func TestRedLockNamesItsServers(t *testing.T) {
	t.Parallel()
	a, dead, gone := newRedis(t), heldport.Refusing(t), heldport.Refusing(t)
	res := a.run(t, "run", "x", "--outage", "500ms", "--redlock", "redis://"+dead+",redis://"+gone+","+a.url, "-c", "true")
	if res.code != exitUnavailable || strings.Contains(res.err, `\n`) || strings.Contains(res.err, "--url") {
		t.Errorf("%+v", res)
	}
	contains(t, res.err, "asked redis://"+dead+", redis://"+gone+", ", "; --redlock names the servers")
}
