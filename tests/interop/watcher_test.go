package interop

import (
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	rueidisv1 "github.com/redis/rueidis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/dashboard"
	"github.com/redlatch/redlatch/internal/acl"
	"github.com/redlatch/redlatch/internal/overview"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/tests/internal/drivers"
	"github.com/redlatch/redlatch/tests/interop/peer"
)

const (
	watched      = "fleet:" // how the names begin
	watchUser    = "watcher"
	watchSecret  = "watcher-of-the-tests"
	billing      = "billing@host-7 pid 4121"
	watchedPlain = "fleet:redisson"
	watchedGo    = "fleet:redlatch"
	watchedFair  = "fleet:fair"
	watchedRead  = "fleet:read"
)

// Who has the rule for watching, and nothing else, sees with what top and serve
// are made of what both libraries hold and wait for; it writes nothing, and is
// refused nothing.
func TestAWatcherSeesAFleetOfBoth(t *testing.T) {
	needsServers(t)
	t.Parallel()
	for name, open := range map[string]func(*testing.T) stage{"Sentinel": sentinels, "Cluster": cluster, "one server": func(t *testing.T) stage {
		t.Helper()
		all := []*testserver.Server{testserver.Start(t, testserver.Redis, testserver.Open...)}
		addr := all[0].Addr()
		return stage{at: single(addr), redisson: peer.Options{Addr: addr}, nodes: all, primaries: all, serverOf: func(string) *testserver.Server { return all[0] }}
	}} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			s.sharded = s.at.cluster
			w := &world{cast: cast{peer.Newest, "goredis", peer.Plain}, t: t, at: s.at, stage: &s}
			w.begin(stageLimit)
			watchFleet(t, w)
		})
	}
}

// of is the same world, with another lock.
func (w *world) of(kind, name string) *world {
	c := *w
	c.kind, c.name = kind, name
	c.server = w.serverOf(name)
	return &c
}

func watchFleet(t *testing.T, w *world) {
	t.Helper()
	w.gone = newGoClient(t, w.driver, w.at, redlatch.Config{
		WatchdogTimeout: goWatchdog, CloseTimeout: generous, AckTimeout: patience / 2,
		Identity: redlatch.Identity{Name: "billing", Host: "host-7", PID: 4121},
	})
	uuid := w.javaClient().UUID
	owners := map[string]string{} // threads answer nothing while they wait
	for _, thread := range []string{"holder", "waiter", "behind", "queued"} {
		owners[thread] = w.javaOwner(thread)
	}

	plain, ours, fairly, read := w.of(peer.Plain, watchedPlain), w.of(peer.Plain, watchedGo), w.of(peer.Fair, watchedFair), w.of(peer.Read, watchedRead)
	var held []javaLock
	for _, of := range []*world{plain, fairly, read} {
		j := of.javaLock("holder")
		j.take(0)
		held = append(held, j)
	}
	hold := ours.goHolds()
	var waiters []*waiting
	javaWaits := func(of *world, thread string) {
		j := of.javaLock(thread)
		waiters = append(waiters, of.start("Java: "+thread, func() error {
			if err := j.Lock.Lock(w.ctx, 0); err != nil {
				return err
			}
			return j.Unlock(w.ctx)
		}))
	}
	javaWaits(plain, "waiter")
	javaWaits(ours, "behind")
	javaWaits(fairly, "queued")
	goLock := plain.goLock()
	waiters = append(waiters, plain.start("Go: acquire", func() error {
		h, err := goLock.Acquire(w.ctx)
		if err != nil {
			return err
		}
		return h.Release(w.ctx)
	}))
	plain.asleep(2)
	ours.asleep(1)
	fairly.queued(1)
	w.eventually("the Go client has noted who it is", func() bool { return strings.Contains(fmt.Sprint(w.keys()), "redlatch_client:") })

	before := w.keys()
	for _, node := range w.stage.nodes {
		words := testserver.Rule(node.Kind(), acl.Rule{Prefixes: []string{watched}, Watch: true}).Words()
		node.MustDo(slices.Concat([]string{"ACL", "SETUSER", watchUser, "reset", "on", ">" + watchSecret}, words)...)
		node.MustDo("ACL", "LOG", "RESET")
	}
	java := func(thread, mode string) string {
		return fmt.Sprintf("; redisson %s of %s, redlatch false, has it %s", owners[thread], uuid, mode)
	}
	w.isSeen(map[string]string{
		watchedPlain: "2 wait" + java("holder", "") + "; " + billing + " waits; 1 more",
		watchedGo:    "1 wait; " + billing + " " + hold.ID() + " of " + strings.Split(hold.ID(), ":")[0] + ", redlatch true, has it ; 1 more",
		watchedFair:  "1 wait" + java("holder", "") + "; redisson " + owners["queued"] + ", redlatch false, is in the queue",
		watchedRead:  "0 wait" + java("holder", "read"),
	})
	for _, node := range w.stage.nodes {
		if log, _ := node.MustDo("ACL", "LOG").([]any); len(log) > 0 {
			t.Errorf("%s has refused %v", node.Addr(), log)
		}
	}
	if after := w.keys(); !slices.Equal(before, after) {
		t.Errorf("the keys were %q, and are %q", before, after)
	}
	for _, j := range held {
		j.unlock()
	}
	w.release(hold)
	for _, c := range waiters {
		c.returns()
	}
}

// keys returns all there are, clients' notes of who they are too.
func (w *world) keys() (all []string) {
	w.t.Helper()
	for _, s := range w.primaries() {
		keys, _ := s.MustDo("KEYS", "*").([]any)
		for _, key := range keys {
			all = append(all, key.(string))
		}
	}
	slices.Sort(all)
	return all
}

// isSeen waits until the watcher sees all locks as they are, by each way of
// looking.
func (w *world) isSeen(want map[string]string) {
	w.t.Helper()
	redis := drivers.Rueidis.Open(w.t, drivers.Place{Rueidis: rueidisv1.ClientOption{
		InitAddress: w.at.addrs, Sentinel: rueidisv1.SentinelOption{MasterSet: w.at.master},
		ForceSingleClient: w.at.master == "" && !w.at.cluster, Username: watchUser, Password: watchSecret,
	}})
	c, err := redlatch.New(redis, redlatch.Config{CloseTimeout: generous})
	w.must(err)
	defer func() { w.must(c.Close()) }()

	lister := overview.Lister{Client: c, Pattern: watched + "*", Lost: true}
	w.sees("the list", func() string {
		l, err := lister.List(w.ctx)
		if err != nil || l.Problem != "" || l.Silent != 0 || len(l.Locks) != len(want) {
			return fmt.Sprintf("%v, %s, %d silent, %d locks", err, l.Problem, l.Silent, len(l.Locks))
		}
		for i := range l.Locks {
			if got := stands(&l.Locks[i]); got != want[l.Locks[i].Name] {
				return fmt.Sprintf("%s: %s; want %s", l.Locks[i].Name, got, want[l.Locks[i].Name])
			}
		}
		return ""
	})
	pages := dashboard.New(c, dashboard.Options{Pattern: watched + "*", Interval: time.Second})
	defer pages.Close()
	for name, want := range want {
		w.sees("a look at "+name, func() string {
			l, problem, err := overview.Look(w.ctx, c, name, false)
			if got := stands(&l); err != nil || problem != "" || got != want {
				return fmt.Sprintf("%v, %s, %s; want %s", err, problem, got, want)
			}
			return ""
		})
		who, count := "redisson", want[:1]
		if name == watchedGo {
			who = billing
		}
		w.sees("the list's page, with "+name, func() string {
			page := get(pages, "/")
			_, row, _ := strings.Cut(page, ">"+name+"</a>")
			row, _, _ = strings.Cut(row, "</tr>")
			return lacks(row, `data-label="Holder">`+who+"<", `data-label="Waiting">`+count+"<")
		})
		w.sees("the page of "+name, func() string {
			parts := []string{`<p class="who">` + who}
			for word := range strings.FieldsSeq(want) { // owners
				if strings.Count(word, "-") == 4 && strings.Contains(word, ":") {
					parts = append(parts, "<code>"+strings.TrimSuffix(word, ",")+"</code>")
				}
			}
			if strings.Contains(want, "1 more") {
				parts = append(parts, "And 1 that does not say who it is.")
			}
			return lacks(get(pages, "/lock?name="+url.QueryEscape(name)), parts...)
		})
	}
}

// stands says in a line who holds a lock and who waits for it, as far as the
// watcher sees it.
func stands(l *overview.Lock) string {
	n, _ := l.Waiters()
	text := fmt.Sprintf("%d wait", n)
	for _, h := range l.Holders {
		text += fmt.Sprintf("; %s %s of %s, redlatch %v, has it %s", h.ByText(h.Client, h.Redlatch), h.Owner, h.Client, h.Redlatch, h.Mode)
	}
	for _, q := range l.Queue {
		text += fmt.Sprintf("; %s %s, redlatch %v, is in the queue", q.ByText(q.Client, q.Redlatch), q.Owner, q.Redlatch)
	}
	for _, c := range l.Waiting {
		text += "; " + c.Who() + " waits"
	}
	if l.Others != nil && *l.Others > 0 {
		text += fmt.Sprintf("; %d more", *l.Others)
	}
	return text
}

// sees looks until nothing is wrong.
func (w *world) sees(what string, wrong func() string) {
	w.t.Helper()
	for end := time.Now().Add(generous); ; time.Sleep(100 * time.Millisecond) {
		said := wrong()
		if said == "" {
			return
		}
		if time.Now().After(end) {
			w.t.Fatalf("%s: %s", what, said)
		}
	}
}

func get(h http.Handler, target string) string {
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, target, nil))
	return html.UnescapeString(answer.Body.String())
}

func lacks(text string, parts ...string) string {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return fmt.Sprintf("%q is missing in %s", part, text)
		}
	}
	return ""
}
