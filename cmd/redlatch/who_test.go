package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/acl"
	"github.com/redlatch/redlatch/internal/overview"
	"github.com/redlatch/redlatch/internal/testserver"
)

// stranger is a client of redlatch that is forged.
const stranger = "5f1b3c2e-6d0a-8d8e-9a51-0123456789ab"

// hears subscribes a connection to channels, and calls f with each message. All
// that f sends is sent before the test ends.
func hears(t *testing.T, s *testserver.Server, f func(send func(channel, text string), message string), channels ...string) {
	t.Helper()
	c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{s.Addr()}, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	subscribed, done := make(chan struct{}, len(channels)), make(chan struct{})
	send := func(channel, text string) {
		if err := c.Do(context.Background(), c.B().Publish().Channel(channel).Message(text).Build()).Error(); err != nil {
			t.Errorf("PUBLISH: %v", err)
		}
	}
	conn, release := c.Dedicate()
	var told sync.WaitGroup
	broken := conn.SetPubSubHooks(rueidis.PubSubHooks{
		OnMessage:      func(m rueidis.PubSubMessage) { told.Go(func() { f(send, m.Message) }) },
		OnSubscription: func(rueidis.PubSubSubscription) { subscribed <- struct{}{} },
	})
	go func() {
		defer close(done)
		if err := <-broken; err != nil {
			t.Log(err) // the end of the subscription
		}
	}()
	conn.Do(t.Context(), conn.B().Subscribe().Channel(channels...).Build())
	for range channels {
		<-subscribed
	}
	t.Cleanup(func() {
		release()
		<-done
		told.Wait()
		c.Close()
	})
}

// lie answers a question about names with claims.
func lie(question, claims string) string {
	var q struct {
		Key string `json:"key"`
	}
	if err := json.Unmarshal([]byte(question), &q); err != nil {
		return err.Error()
	}
	return `{"v":1,"client":"` + stranger + `","identity":{"name":"evil\u001b[2Jname","host":"h\u202e","pid":7},"for":["` +
		q.Key + `"],"claims":[` + claims + `]}`
}

// A name may have any byte, and as many as it likes: clients are asked about it
// none the less.
func TestShowAsksAboutNamesThatAreNoText(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	for _, name := range []string{"bad\xff*\xfe", strings.Repeat("long", 2000)} {
		j := start(t, r.command("run", name, "-c", "echo held; sleep 600"))
		j.says("held")
		if res := r.asked(t, "show", name); res.code != 0 || res.err != "" || !strings.Contains(res.out, "by     sh@") {
			t.Errorf("%+.300v", res)
		}
	}
}

// A client that listens and says nothing may hold or wait for anything.
func TestShowSaysWhoIsSilent(t *testing.T) {
	t.Parallel()
	s := testserver.Start(t, testserver.Redis)
	r := &redis{url: "redis://" + s.Addr()}
	s.MustDo("HSET", "x", holder, "1")
	s.MustDo("PEXPIRE", "x", "3600000")
	nothing := func(func(channel, text string), string) {}
	hears(t, s, nothing, "redlatch_ask")
	hears(t, s, nothing, "redlatch_ask", "redisson_lock__channel:{x}")
	// A command that has just ended may still be counted, and would be one more.
	alone := func() {
		t.Helper()
		eventually(t, "the command before listens no more", func() bool {
			return fmt.Sprint(s.MustDo("PUBSUB", "NUMSUB", "redlatch_ask")) == "[redlatch_ask 2]"
		})
	}
	res := r.run(t, "show", "x")
	contains(t, res.out, "\nby       redisson\n", "\nwaiters  1 that does not say who it is\n", "\nsilent   2 clients gave no answer: ")
	if res.code != 0 || res.err != "" {
		t.Errorf("%+v", res)
	}
	alone()
	if got := document[overview.Lock](t, r.asked(t, "show", "x", "-o", "json")); got.Silent == nil || *got.Silent != 2 || got.Others == nil || *got.Others != 1 {
		t.Errorf("%+v", got)
	}
	alone()
	res = r.run(t, "ls")
	if contains(t, res.err, "redlatch: 2 clients gave no answer: "); strings.Count(res.err, "\n") != 1 || res.code != 0 {
		t.Errorf("%+v", res)
	}
}

// What a holder says of its work now is seen, on every server, and not what it
// said before.
func TestShowHasTheLatestNoteOfAHold(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k testserver.Kind) {
		s := testserver.Start(t, k)
		r := &redis{url: "redis://" + s.Addr()}
		h, err := r.user(t, "importer").Lock("import", redlatch.Note("row 0 of 9")).Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var shown string
		eventually(t, "the note", func() bool { // its client may only begin to listen
			shown = r.run(t, "show", "import").out
			return strings.Contains(shown, "\nnote   row 0 of 9\n")
		}, func() string { return shown })
		if err := h.SetNote("row 4 \x1b[2Jof 9"); err != nil {
			t.Fatal(err)
		}
		contains(t, r.run(t, "show", "import").out, "\nnote   row 4 \\x1b[2Jof 9\n")
		if got := document[overview.Lock](t, r.asked(t, "show", "import", "-o", "json")); len(got.Holders) != 1 || got.Holders[0].Note != `row 4 \x1b[2Jof 9` {
			t.Errorf("%+v", got)
		}
		if fields := fmt.Sprint(s.MustDo("HKEYS", "import")); fields != "["+h.ID()+"]" {
			t.Errorf("the lock has the fields %s", fields)
		}
		if err := h.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if res := r.run(t, "show", "import"); strings.Contains(res.out, "row") {
			t.Errorf("of a lock that is free: %+v", res)
		}
	})
}

// What Redis does not have is marked, and what a client says of itself cannot
// reach the terminal.
func TestShowMarksFalseClaims(t *testing.T) {
	t.Parallel()
	s := testserver.Start(t, testserver.Redis)
	r := &redis{url: "redis://" + s.Addr()}
	s.MustDo("HSET", "x", holder, "1")
	s.MustDo("PEXPIRE", "x", "3590000")
	s.MustDo("SET", "permits", "4")
	hears(t, s, func(send func(channel, text string), question string) {
		send("redlatch_answer", lie(question, `{"name":"x","kind":"lock","owner":"`+stranger+`:1","ago":5000,"renewed":true,"note":"row\u001b[2J\n4"},`+
			`{"name":"x","kind":"lock","ago":3000,"waits":true,"site":"a\u001b]0;b.go:1"},`+
			`{"name":"x","kind":"lock","owner":"`+stranger+`:2","ago":12000,"lost":"gone\u001b[2J"},`+
			`{"name":"permits","kind":"semaphore","ago":1000,"count":3}`))
	}, "redlatch_ask")

	res := r.run(t, "show", "x")
	contains(t, res.out, "\nby        redisson\n", "\nttl       59m",
		"\nlost      by evil\\x1b[2Jname@h\\u202e pid 7, 12s ago: gone\\x1b[2J\n",
		"\nclaimed   by evil\\x1b[2Jname@h\\u202e pid 7, for 5s: \"row\\x1b[2J\\n4\"; Redis does not have that: it is false, or over\n",
		"\nwaiter 1  evil\\x1b[2Jname@h\\u202e pid 7, for 3s, at a\\x1b]0;b.go:1\n")
	if res.code != 0 || res.err != "" || strings.ContainsAny(res.out, "\x1b\u202e") {
		t.Errorf("%+v", res)
	}
	got := document[overview.Lock](t, r.asked(t, "show", "x", "-o", "json"))
	if len(got.Lost) != 1 || *got.Lost[0].For != 12000 || len(got.Claims) != 1 || got.Claims[0].Evidence != "not stored" || len(got.Waiting) != 1 || got.Holders[0].By != "" {
		t.Errorf("%+v", got)
	}
	contains(t, r.run(t, "show", "permits").out, "\nclaimed  by evil\\x1b[2Jname@h\\u202e pid 7, for 1s; 3 permits, by its own word\n")
	contains(t, r.run(t, "show", "neither").out, "exists  no: ")
	res = r.run(t, "ls")
	if row := "\nx     lock  1      redisson  -    59m"; !strings.Contains(res.out, row) || strings.Contains(res.out, "evil") || res.err != "" {
		t.Errorf("%+v", res)
	}
}

// A user who may not use the channels of the census sees what is stored, and is
// told why that is all.
func TestShowWithoutTheRightToAsk(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k testserver.Kind) {
		s := testserver.Start(t, k)
		var rule []string
		for _, word := range testserver.Rule(k, acl.Rule{Prefixes: []string{"app:"}, List: true}).Words() {
			if word != "&redlatch_ask" && word != "&redlatch_answer" {
				rule = append(rule, word)
			}
		}
		s.MustDo(append([]string{"ACL", "SETUSER", "watcher7", "reset", "on", ">secret"}, rule...)...)
		s.MustDo("HSET", "app:x", holder, "1")
		s.MustDo("PEXPIRE", "app:x", "3600000")
		r := &redis{url: "redis://watcher7:secret@" + s.Addr()}
		for _, command := range []string{"show app:x", "show app:x -o json", "ls app:*", "ls app:* -o json"} {
			began := time.Now()
			res := r.run(t, strings.Fields(command)...)
			contains(t, res.out, "app:x", holder)
			contains(t, res.err, "redlatch: clients could not be asked who they are: ", "redlatch_ask and redlatch_answer")
			if res.code != 0 || strings.Contains(res.out, "silent") || strings.Count(res.err, "\n") != 1 {
				t.Errorf("%s: %+v", command, res)
			}
			t.Logf("%s took %v: %s", command, time.Since(began), res.err)
		}
	})
}
