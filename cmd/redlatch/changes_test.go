package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/testserver"
)

// Each change is a line; a server that goes away and comes back is said, and
// survived.
func TestWatchPrintsWhatHappensToALock(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	j := start(t, r.command("watch", "one", "--outage", "1s"))
	j.says("  begins: not there, so if it is a lock, it is free\n")
	r.hold("one", time.Hour)
	j.says("  acquired by " + holder + "\n")
	r.Close()
	j.says("; looking again\n")
	if err := r.Restart(); err != nil {
		t.Fatal(err)
	}
	j.says("  begins: lock, held by ")
	r.Del("one")
	j.says("  released by " + holder + "\n")
	if err := r.Set("one", "3"); err != nil {
		t.Fatal(err)
	}
	j.says("  state: semaphore or latch, 3\n")
	j.signal(os.Interrupt)
	j.ends(0)
	if out := j.output(); strings.Contains(out, "\x1b") || strings.Count(out, "looking again") != 1 {
		t.Errorf("%q", out)
	}
}

func TestWatchPrintsJSON(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	r.hold("one", time.Hour)
	j := start(t, r.command("watch", "one", "-o", "json"))
	j.says(`"begins"`)
	r.Del("one")
	j.says(`"released"`)
	j.signal(os.Interrupt)
	j.ends(0)
	d := json.NewDecoder(strings.NewReader(j.output()))
	d.DisallowUnknownFields()
	var begins, released changeDocument
	for _, v := range []*changeDocument{&begins, &released} {
		if err := d.Decode(v); err != nil {
			t.Fatal(err)
		}
	}
	if begins.Change != "begins" || begins.Owner != "" || !begins.Lock.Held || len(begins.Lock.Holders) != 1 || time.Since(begins.At) > time.Minute {
		t.Errorf("%+v", begins)
	}
	if released.Change != "released" || released.Owner != holder || released.Lock.Held || released.Lock.Name != "one" || d.More() {
		t.Errorf("%+v", released)
	}
}

// A command that has just begun has noted nowhere who it is: it was shown by its
// id.
func TestWatchNamesAHolderThatHasJustBegun(t *testing.T) {
	t.Parallel()
	s := testserver.Start(t, testserver.Redis)
	r := &redis{nil, "redis://" + s.Addr()}
	j := start(t, r.command("watch", "one"))
	j.says("  begins: ")
	for range 3 {
		before := strings.Count(j.output(), "  released by ")
		holding := start(t, r.command("run", "one", "--", "sleep", "1000"))
		eventually(t, "a holder", func() bool { return strings.Count(j.output(), "  acquired by ") > before }, j.output)
		holding.signal(os.Interrupt)
		holding.ends(128 + 2)
		eventually(t, "none", func() bool { return strings.Count(j.output(), "  released by ") > before }, j.output)
	}
	j.signal(os.Interrupt)
	j.ends(0)
	for line := range strings.Lines(j.output()) {
		if strings.Contains(line, "ed by ") && !strings.Contains(line, " pid ") {
			t.Errorf("%q has no name", line)
		}
	}
}

// It is not looked again at what the user may not ask, so that is not said. What
// is missing is said, once.
func TestWatchSaysWhatItMayNotAsk(t *testing.T) {
	t.Parallel()
	s := testserver.Start(t, testserver.Redis)
	s.MustDo("ACL", "SETUSER", "looker", "reset", "on", ">"+password, "~*", "+@all")
	r, looker := &redis{nil, "redis://" + s.Addr()}, &redis{nil, "redis://looker:" + password + "@" + s.Addr()}
	j := start(t, looker.command("watch", "one"))
	j.says("who waits and what was lost is not known: ")
	j.says("redlatch acl --watch")
	holding := start(t, r.command("run", "one", "--", "sleep", "1000"))
	j.says("  acquired by ")
	holding.signal(os.Interrupt)
	holding.ends(128 + 2)
	j.says("  released by ")
	j.signal(os.Interrupt)
	j.ends(0)
	if out := j.output(); strings.Contains(out, "looking again") || strings.Count(out, "not known") != 1 {
		t.Errorf("%q", out)
	}
}

// Nobody waits for what can never be looked at.
func TestWatchEndsIfItCannotBegin(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	if _, err := r.Push("list", "a"); err != nil {
		t.Fatal(err)
	}
	for name, code := range map[string]int{"list": exitData, "{": exitUsage} {
		if res := r.run(t, "watch", name); res.code != code || res.out != "" || res.err == "" {
			t.Errorf("%s: %+v", name, res)
		}
	}
}
