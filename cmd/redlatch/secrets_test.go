package main

import (
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/acl"
	"github.com/redlatch/redlatch/internal/testserver"
)

// A user may be called as what his program locks. To hide his name was to say
// ***:42 of each lock, and to give hints that cannot be typed.
func TestAUsersNameDoesNotHideTheNamesOfLocks(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	r.RequireUserAuth("orders", password)
	r.url = strings.Replace(r.url, "://:", "://orders:", 1)
	r.hold("orders:42", time.Hour)
	for text, line := range map[string]string{
		"type: redlatch release --force orders:42":   "release orders:42",
		`lock "orders:42" is held by`:                "run orders:42 --try -- true",
		`"name": "orders:42"`:                        "show orders:42 -o json",
		"needs a command: redlatch run orders:42 --": "run orders:42",
		"redis://***@" + r.Addr():                    "config check",
		"redlatch: redlatch show orders:42 shows":    "semaphore get orders:42",
	} {
		if res := r.run(t, strings.Fields(line)...); !strings.Contains(res.out+res.err, text) || strings.Contains(res.err, "***:42") {
			t.Errorf("%s: %+v", line, res)
		}
	}
}

// Whatever a command does, and whether it works or not, it shows no password.
func TestNoPasswordIsShown(t *testing.T) {
	t.Parallel()
	const right, wrong = "hunter2-right", "hunter2-wrong"
	eachKind(t, func(t *testing.T, k testserver.Kind) {
		s := testserver.Start(t, k)
		rule := testserver.Rule(k, acl.Rule{Prefixes: []string{"app:"}, Doctor: true}).Words()
		s.MustDo(append([]string{"ACL", "SETUSER", "ann", "reset", "on", ">" + right}, rule...)...)
		s.MustDo("CONFIG", "SET", "masterauth", right)
		for _, password := range []string{right, wrong} {
			r := &redis{url: "redis://ann:" + password + "@" + s.Addr()}
			for _, command := range []string{
				"ls", "ls -o json", "show app:x", "show app:x -o json", "show other", "release --force app:x -o json",
				"semaphore set app:s 3 -o json", "semaphore get app:s -o json", "latch set app:l 1 -o json", "latch down app:l -o json",
				"run app:x -- true", "run app:x --permits 1/2 -- true", "run other -- true", "doctor --prefix app:", "doctor --prefix app: -o json",
				"config check", "config check -o json", "acl app:", "version -o json",
			} {
				res := r.run(t, strings.Fields(command)...)
				if strings.Contains(res.out+res.err, "hunter2") {
					t.Errorf("%s: %+v", command, res)
				}
				quiet := strings.HasPrefix(command, "config") || strings.HasPrefix(command, "acl") || strings.HasPrefix(command, "version")
				if refused := res.code == exitUnavailable && strings.Contains(res.err, "WRONGPASS"); password == wrong && refused == quiet {
					t.Errorf("%s with the wrong password: %+v", command, res)
				}
			}
		}
	})
}
