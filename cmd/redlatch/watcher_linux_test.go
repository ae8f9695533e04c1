package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/internal/acl"
	"github.com/redlatch/redlatch/internal/testserver"
)

// A user with the rule of redlatch acl --watch uses ls, show, watch and top, on
// each kind of server. Nothing is written and nothing is refused, but for what it
// must not do: that is said, and ends no hold.
func TestWatcher(t *testing.T) {
	long(t)
	t.Parallel()
	for name, serve := range map[string]func(t *testing.T, k testserver.Kind) (address string, servers, primaries []*testserver.Server){
		"one server": func(t *testing.T, k testserver.Kind) (string, []*testserver.Server, []*testserver.Server) {
			s := []*testserver.Server{testserver.Start(t, k)}
			return "redis://%s" + s[0].Addr(), s, s
		},
		"Sentinel": func(t *testing.T, k testserver.Kind) (string, []*testserver.Server, []*testserver.Server) {
			s := testserver.StartSentinels(t, k)
			return "redis+sentinel://%s" + strings.Join(s.Addrs(), ",") + "/" + s.Name, s.Data, s.Data[:1]
		},
		"Cluster": func(t *testing.T, k testserver.Kind) (string, []*testserver.Server, []*testserver.Server) {
			c := testserver.StartCluster(t, k)
			return "redis+cluster://%s" + strings.Join(c.Addrs(), ","), c.Nodes, c.Nodes[:3]
		},
	} {
		t.Run(name, func(t *testing.T) {
			eachKind(t, func(t *testing.T, k testserver.Kind) {
				address, servers, primaries := serve(t, k)
				for _, s := range servers {
					words := testserver.Rule(k, acl.Rule{Prefixes: []string{"app:"}, Watch: true}).Words()
					s.MustDo(append([]string{"ACL", "SETUSER", "watcher7", "reset", "on", ">" + password}, words...)...)
				}
				keys := func() (all []string) {
					for _, s := range primaries {
						for _, key := range s.MustDo("KEYS", "*").([]any) {
							all = append(all, key.(string))
						}
					}
					slices.Sort(all)
					return all
				}
				app := &redis{url: fmt.Sprintf(address, "")}
				holder := start(t, app.command("run", "app:x", "--", "sleep", "1000"))
				eventually(t, "the holder has noted who it is", func() bool { return strings.Contains(fmt.Sprint(keys()), "redlatch_client:") }, holder.output)
				r := &redis{url: fmt.Sprintf(address, "watcher7:"+password+"@")}
				watching, waiter := start(t, r.command("watch", "app:x")), start(t, app.command("run", "app:x", "--", "true"))
				watching.says("begins: lock, held by sleep@")
				watching.says("1 waiting") // so the clients are asked
				for _, j := range []*job{waiter, watching} {
					j.signal(os.Interrupt)
					j.wait()
				}
				if out := watching.output(); strings.Contains(out, "looking again") {
					t.Errorf("watch: %s", out)
				}
				before := keys()
				for _, command := range []string{"ls app:*", "ls --all app:*", "show app:x"} {
					res := r.run(t, strings.Fields(command)...)
					contains(t, res.out, "app:x", "sleep@")
					if res.code != 0 || res.err != "" {
						t.Errorf("%s: %+v", command, res)
					}
				}
				cmd := r.command("top", "--interval", "1s", "app:*")
				cmd.Env = append(cmd.Env, "TERM=xterm")
				term := onTerminal(t, cmd)
				term.says("1 like app:*")
				term.says("sleep@")
				term.types("\r")
				term.says("renewed while it lives")
				for _, s := range servers {
					for _, entry := range s.MustDo("ACL", "LOG").([]any) {
						// Redis 6.2 refuses what it does not know of a command to whoever may not do all
						// of it.
						if log := fmt.Sprint(entry); k != testserver.Redis62 || !strings.Contains(log, " object client ") && !strings.Contains(log, " lua object pubsub ") {
							t.Errorf("refused: %s", log)
						}
					}
				}
				term.types("r")
				term.says("Take the lock away?")
				term.types("y")
				term.says("app:x was not released: ")
				term.types("q")
				term.ends(0)
				if res := r.run(t, "release", "--force", "app:x"); res.code != exitUnavailable || !strings.Contains(res.err, "the user's rights") {
					t.Errorf("%+v", res)
				}
				if after := keys(); !slices.Equal(before, after) {
					t.Errorf("the keys were %q, and are %q", before, after)
				}
				select {
				case <-holder.done:
					t.Errorf("the holder has lost its lock: %s", holder.output())
				default:
				}
			})
		})
	}
}
