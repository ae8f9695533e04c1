package main

import (
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/server"
)

// What is no lock stays what it is, whatever is asked of it.
func TestKeysThatAreNoLocks(t *testing.T) {
	t.Parallel()
	type want struct {
		code int
		says string
	}
	noLock := want{65, "not a lock"}
	for _, tc := range []struct {
		name string
		put  func(r *redis) error
		ask  want // of show and release
		try  want // of run
	}{
		{"string", func(r *redis) error { return r.Set("k", "text") }, noLock, noLock},
		{"list", func(r *redis) error { _, err := r.Lpush("k", "1"); return err }, noLock, noLock},
		{"hash of words", func(r *redis) error { r.HSet("k", "name", "Ann", "town", "Ulm"); return nil }, noLock, want{1, "held by"}},
		{"hash of a word under an owner's name", func(r *redis) error { r.HSet("k", holder, "Ann"); return nil }, noLock, want{1, holder}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := newRedis(t)
			if err := tc.put(r); err != nil {
				t.Fatal(err)
			}
			before := r.Dump()
			for _, call := range []struct {
				args []string
				want want
			}{
				{[]string{"show", "k"}, tc.ask},
				{[]string{"show", "k", "-o", "json"}, tc.ask},
				{[]string{"release", "--force", "k"}, tc.ask},
				{[]string{"release", "--force", "k", "-o", "json"}, tc.ask},
				{[]string{"run", "k", "--try", "--", "echo", "ran"}, tc.try},
				{[]string{"run", "k", "a while", "--", "echo", "ran"}, tc.try},
			} {
				res := r.runAWhile(t, call.want.says, call.args...)
				if res.code != call.want.code || res.out != "" || !strings.Contains(res.err, call.want.says) {
					t.Errorf("%q: %+v; want exit %d and %q", call.args, res, call.want.code, call.want.says)
				}
			}
			for _, args := range [][]string{{"ls"}, {"ls", "k", "-o", "json"}} {
				if res := r.run(t, args...); res.code != 0 || strings.Contains(res.out, "k ") || strings.Contains(res.out, `"k"`) {
					t.Errorf("%q: %+v; want exit 0 without k", args, res)
				}
			}
			if after := r.Dump(); after != before || r.TTL("k") != 0 {
				t.Errorf("before\n%safter, with a TTL of %v\n%s", before, r.TTL("k"), after)
			}
		})
	}
}

// A server that answers every script with an error.
func TestWhatTheServerRefuses(t *testing.T) {
	t.Parallel()
	commands := [][]string{{"show", "x"}, {"release", "--force", "x"}, {"run", "x", "--try", "--", "echo", "ran"}}
	for _, tc := range []struct {
		reply    string
		commands [][]string
		code     int
		says     string
	}{
		{"ERR unknown command 'EVALSHA'", commands, 70, "unknown command"},
		{"NOPERM this user has no permissions to run the 'evalsha' command", commands, 69, "NOPERM"},
		{"MOVED 16287 127.0.0.1:7001", commands[:1], 69, "cluster"}, // could pass, so that it takes its time
	} {
		t.Run(strings.Fields(tc.reply)[0], func(t *testing.T) {
			t.Parallel()
			r := newRedis(t)
			r.hold("x", time.Hour)
			r.Server().SetPreHook(func(c *server.Peer, cmd string, _ ...string) bool {
				script := strings.HasPrefix(cmd, "EVAL")
				if script {
					c.WriteError(tc.reply)
				}
				return script
			})
			for _, args := range tc.commands {
				res := r.run(t, args...)
				if res.code != tc.code || res.out != "" || !strings.Contains(res.err, tc.says) {
					t.Errorf("%q: %+v; want exit %d and %q", args, res, tc.code, tc.says)
				}
			}
			if !r.Exists("x") {
				t.Error("the lock is gone")
			}
		})
	}
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	r := &redis{}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if res := r.run(t, "completion", shell); res.code != 0 || res.err != "" || !strings.Contains(res.out, "redlatch") {
			t.Errorf("%s: exit %d, %d bytes, %s", shell, res.code, len(res.out), res.err)
		}
	}
}

// An empty prefix, from a variable that is not set, must not allow everything.
func TestACLRefusesAnEmptyPrefix(t *testing.T) {
	t.Parallel()
	r := &redis{}
	for _, args := range [][]string{{""}, {"orders:", ""}} {
		if res := r.run(t, append([]string{"acl"}, args...)...); res.code != exitUsage || res.out != "" || !strings.Contains(res.err, "an empty PREFIX") {
			t.Errorf("%q: %+v", args, res)
		}
	}
}
