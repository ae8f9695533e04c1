package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"
)

// Each change is a line; a server that goes away and comes back is said, and survived.
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
