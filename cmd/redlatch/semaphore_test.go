package main

import (
	"os"
	"strings"
	"testing"
)

// counted runs a command and decodes what it prints.
func (r *redis) counted(t *testing.T, args ...string) countJSON {
	t.Helper()
	return document[countJSON](t, r.run(t, append(args, "-o", "json")...))
}

func TestSemaphoreCommands(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"", "--expirable"} {
		t.Run("semaphore"+kind, func(t *testing.T) {
			r := newRedis(t)
			args := func(words ...string) []string {
				if kind != "" {
					words = append(words[:1], append([]string{kind}, words[1:]...)...)
				}
				return append([]string{"semaphore"}, words...)
			}
			if got := r.counted(t, args("get", "ports")...); got.Count != 0 || got.Name != "ports" || got.Set != nil {
				t.Errorf("of none: %+v", got)
			}
			if got := r.counted(t, args("set", "ports", "4")...); got.Count != 4 || got.Set == nil || !*got.Set {
				t.Errorf("set: %+v", got)
			}
			if res := r.run(t, args("set", "ports", "7")...); res.code != exitConflict || res.out != "4\n" {
				t.Errorf("set again: %+v", res)
			}
			if res := r.run(t, args("add", "ports", "2")...); res.code != 0 || res.out != "6\n" {
				t.Errorf("add: %+v", res)
			}
			if got := r.counted(t, args("get", "ports")...); got.Count != 6 {
				t.Errorf("get: %+v", got)
			}
		})
	}
	r := newRedis(t)
	if res := r.run(t, "semaphore", "add", "ports", "--", "-3"); res.code != 0 || res.out != "-3\n" {
		t.Errorf("add less: %+v", res)
	}
	for _, bad := range [][]string{{"semaphore", "set", "ports", "many"}, {"semaphore", "set", "ports", "--", "-1"}, {"semaphore", "get", "a{"}, {"latch", "set", "l", "0"}} {
		if res := r.run(t, bad...); res.code != exitUsage || res.out != "" {
			t.Errorf("%q: %+v", bad, res)
		}
	}
}

func TestLatchCommands(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	if res := r.run(t, "latch", "wait", "workers"); res.code != 0 {
		t.Errorf("wait for none: %+v", res)
	}
	if got := r.counted(t, "latch", "set", "workers", "2"); got.Count != 2 || !*got.Set {
		t.Errorf("set: %+v", got)
	}
	if res := r.run(t, "latch", "set", "workers", "5"); res.code != exitConflict || res.out != "2\n" {
		t.Errorf("set again: %+v", res)
	}
	if res := r.runAWhile(t, "not 0", "latch", "wait", "workers", "a while"); res.code != exitConflict || !strings.Contains(res.err, "not 0") {
		t.Errorf("wait: %+v", res)
	}
	for _, want := range []string{"1\n", "0\n"} {
		if res := r.run(t, "latch", "down", "workers"); res.code != 0 || res.out != want {
			t.Errorf("down: %+v, want %q", res, want)
		}
	}
	if res := r.run(t, "latch", "wait", "workers", "-w", "0"); res.code != 0 {
		t.Errorf("wait at 0: %+v", res)
	}
}

func TestRunWithPermits(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	res := r.run(t, "run", "encoder", "--permits", "2/3", "-c", `echo "$REDLATCH_NAME ${#REDLATCH_OWNER}"`)
	if res.code != 0 || res.out != "encoder 65\n" { // two ids and a comma
		t.Errorf("%+v", res)
	}
	if got := r.counted(t, "semaphore", "get", "--expirable", "encoder"); got.Count != 3 {
		t.Errorf("after it: %+v", got)
	}
	// The command itself finds one permit left, and not two.
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	inner := `"` + program + `" run encoder --try --permits `
	res = r.run(t, "run", "encoder", "--permits", "2/3", "-c", inner+"1/3 -- true && "+inner+"2/3 -- true; echo $?")
	if res.code != 0 || res.out != "1\n" {
		t.Errorf("%+v", res)
	}
	if res := r.run(t, "run", "encoder", "--permits", "1/4", "--", "true"); res.code != exitUsage || !strings.Contains(res.err, "has 3 permits, not 4") {
		t.Errorf("another number: %+v", res)
	}
	for _, bad := range []string{"3", "0/2", "3/2", "a/b", "1/"} {
		if res := r.run(t, "run", "encoder", "--permits", bad, "--", "true"); res.code != exitUsage {
			t.Errorf("--permits %s: %+v", bad, res)
		}
	}
	for _, other := range []string{"--fair", "--shared", "--multi=a,b"} {
		args := []string{"run", "--permits", "1/2", other}
		if !strings.HasPrefix(other, "--multi") {
			args = append(args, "x")
		}
		if res := r.run(t, append(args, "--", "true")...); res.code != exitUsage || !strings.Contains(res.err, "contradict") {
			t.Errorf("%s: %+v", other, res)
		}
	}
}
