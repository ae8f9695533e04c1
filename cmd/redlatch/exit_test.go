package main

import (
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/server"
)

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
		{"OOM command not allowed when used memory > 'maxmemory'.", commands[:1], 69, "redlatch doctor tells what is wrong at redis://"},
		{"READONLY You can't write against a read only replica.", commands[:1], 69, "the address of the primary"},
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

// A database that is not there is a mistake in the URL, which no waiting mends: a
// candidate does not try for ever.
func TestADatabaseThatIsNotThere(t *testing.T) {
	t.Parallel()
	for _, reply := range []string{"ERR DB index is out of range", "ERR SELECT is not allowed in cluster mode"} {
		r := newRedis(t)
		r.url = strings.Replace(r.url, "?", "/3?", 1)
		r.Server().SetPreHook(func(c *server.Peer, cmd string, _ ...string) bool {
			if cmd == "SELECT" {
				c.WriteError(reply)
			}
			return cmd == "SELECT"
		})
		for _, args := range [][]string{{"show", "x"}, {"run", "x", "--", "echo", "ran"}, {"elect", "x", "--", "echo", "ran"}, {"ls"}, {"doctor"}} {
			res := r.run(t, args...)
			if res.code != 64 || res.out != "" || !strings.Contains(res.err, strings.TrimPrefix(reply, "ERR ")) || !strings.Contains(res.err, "no such database at") {
				t.Errorf("%q: %+v; want exit 64 and %q", args, res, reply)
			}
		}
	}
}

// A server that does not speak TLS is silent, or hangs up, and says nothing of it.
func TestAServerWithoutTLS(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	r.url = strings.Replace(r.url, "redis://", "rediss://", 1)
	res := r.run(t, "show", "x", "--outage", "0")
	if res.code != 69 || !strings.Contains(res.err, "with TLS, which the server may not speak there") {
		t.Errorf("%+v", res)
	}
}
