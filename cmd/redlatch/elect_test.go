//go:build unix

package main

import (
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// leader is a command that says which term it has, and lasts.
const leader = `trap 'echo "ends $REDLATCH_TOKEN"; exit 0' TERM; echo "leads $REDLATCH_TOKEN"; while :; do sleep 0.02; done`

// countTerms has the next term of the election x be 1; else it would be the
// server's clock.
func countTerms(t *testing.T, r *redis) {
	t.Helper()
	if err := r.Set("redisson_lock_token:{x}", "0"); err != nil {
		t.Fatal(err)
	}
}

// Of two one leads, and the other follows when that is told to end.
func TestElectRunsOnOneMachineAndThenOnTheNext(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	countTerms(t, r)
	first := start(t, r.command("elect", "x", "-c", leader))
	first.says("leads 1\n")
	second := start(t, r.command("elect", "x", "-c", leader))
	eventually(t, "second waits", func() bool { return len(r.PubSubChannels("*{x}")) == 1 }, second.output)
	if text := second.output(); text != "" {
		t.Errorf("there are two leaders: %s", text)
	}
	first.signal(unix.SIGTERM)
	first.says("ends 1\n")
	first.ends(0) // the command's
	second.says("leads 2\n")
	second.signal(unix.SIGTERM)
	second.ends(0)
	r.isFree(t, "x")
}

// One that stands by starts its command when nobody else does.
func TestElectLetsOthersGoFirst(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	countTerms(t, r)
	listen := func(n int) {
		t.Helper()
		eventually(t, "they wait", func() bool {
			all := 0
			for _, channel := range r.PubSubChannels("*{x}") {
				all += r.PubSubNumSub(channel)[channel]
			}
			return all == n
		}, func() string { return "" })
	}
	first := start(t, r.command("elect", "x", "-c", leader))
	first.says("leads 1\n")
	worse := start(t, r.command("elect", "x", "--standby", "5s", "-c", leader))
	listen(1)
	better := start(t, r.command("elect", "x", "-c", leader))
	listen(2)
	first.signal(unix.SIGTERM)
	first.ends(0)
	better.says("leads 2\n")
	if text := worse.output(); text != "" {
		t.Errorf("it did not stand by: %s", text)
	}
	better.signal(unix.SIGTERM)
	better.ends(0)
	worse.says("leads 3\n")
	worse.signal(unix.SIGTERM)
	worse.ends(0)
	r.isFree(t, "x")

	waits := start(t, r.command("elect", "x", "--standby", "1h", "-c", leader))
	listen(1)
	waits.signal(unix.SIGTERM)
	waits.ends(143)
	if text := waits.output(); text != "" {
		t.Error(text)
	}
}

// A leader whose lock is taken away ends, and its command runs again in a later
// term.
func TestElectEndsACommandThatLeadsNoLongerAndStandsAgain(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	countTerms(t, r)
	j := start(t, r.command("elect", "x", "--kill-after", "1m", "-c", leader))
	j.says("leads 1\n")
	if res := r.run(t, "release", "--force", "x"); res.code != 0 {
		t.Fatalf("%+v", res)
	}
	j.says("ends 1\n")
	j.says("released by force; ending the command: TERM, and KILL 1m0s later")
	j.says("leads 2\n")
	j.signal(unix.SIGTERM)
	j.ends(0)
	r.isFree(t, "x")
}

// A candidate without a server says so in the log of its service manager, once for
// many tries, and goes on.
func TestElectTellsOfAnOutage(t *testing.T) {
	t.Parallel()
	for _, standby := range []string{"0", "1s"} {
		t.Run(standby, func(t *testing.T) {
			t.Parallel()
			r := newRedis(t)
			r.Close()
			j := start(t, r.command("elect", "x", "--outage", "0", "--standby", standby, "-c", "echo leads"))
			j.says("redlatch: waiting to lead x: the server does not answer: ")
			if err := r.Restart(); err != nil {
				t.Fatal(err)
			}
			j.says("leads\n")
			j.ends(0)
			if text := j.output(); strings.Count(text, "waiting to lead") != 1 {
				t.Error(text)
			}
		})
	}
}

func TestElectEndsWithTheExitCodeOfItsCommand(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	if res := r.run(t, "elect", "x", "--", "sh", "-c", "exit 7"); res.code != 7 {
		t.Errorf("%+v", res)
	}
	if res := r.run(t, "elect", "x", "--", "true"); res.code != 0 || res.out != "" || res.err != "" {
		t.Errorf("%+v", res)
	}
	r.isFree(t, "x")
	if res := r.run(t, "run", "x", "--", r.command().Path, "elect", "x", "--", "true"); res.code != 64 || !strings.Contains(res.err, "already") {
		t.Errorf("under itself: %+v", res)
	}
}

// A signal ends a candidate that waits to lead, and it starts nothing.
func TestASignalEndsACampaign(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	r.hold("x", time.Hour)
	j := start(t, r.command("elect", "x", "-c", "echo leads"))
	eventually(t, "it waits", func() bool { return len(r.PubSubChannels("*{x}")) == 1 }, j.output)
	j.signal(unix.SIGTERM)
	j.ends(143)
	if text := j.output(); text != "" {
		t.Error(text)
	}
}

// A service manager that stops redlatch while a term ends is not disobeyed:
// redlatch ends, and starts nothing.
func TestElectDoesNotSwallowASignalWhenItsTermIsLost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		signal unix.Signal
		before bool // the loss
		want   int
	}{
		"TERM":                 {unix.SIGTERM, false, 143},
		"HUP":                  {unix.SIGHUP, false, 129},
		"TERM before the loss": {unix.SIGTERM, true, 143},
		"INT before the loss":  {unix.SIGINT, true, 130},
		"QUIT before the loss": {unix.SIGQUIT, true, 131},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRedis(t)
			countTerms(t, r)
			j := start(t, r.command("elect", "x", "--kill-after", "1m", "-c", endsWhenToldTwice))
			j.says("leads 1\n")
			lose := func() {
				if res := r.run(t, "release", "--force", "x"); res.code != 0 {
					t.Fatalf("%+v", res)
				}
			}
			first, second := lose, func() { j.signal(c.signal) }
			if c.before {
				first, second = second, first
			}
			first()
			j.says("told 1\n")
			second()
			j.says("told 2\n")
			j.ends(c.want)
			if text := j.output(); strings.Contains(text, "leads 2") {
				t.Error(text)
			}
			r.isFree(t, "x")
		})
	}
}

// endsWhenToldTwice is a command that ends at the second signal.
const endsWhenToldTwice = `n=0; trap 'n=$((n+1)); echo "told $n"; if [ $n = 2 ]; then exit 0; fi' HUP INT QUIT TERM; echo "leads $REDLATCH_TOKEN"; while :; do sleep 0.02; done`

// A leader that was once told to read its files again is no reason to end a
// candidacy.
func TestElectStandsAgainAfterASignalThatDoesNotMeanTheEnd(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	countTerms(t, r)
	j := start(t, r.command("elect", "x", "--kill-after", "1m", "-c", "trap 'echo reads' HUP; "+leader))
	j.says("leads 1\n")
	j.signal(unix.SIGHUP)
	j.says("reads\n")
	if res := r.run(t, "release", "--force", "x"); res.code != 0 {
		t.Fatalf("%+v", res)
	}
	j.says("leads 2\n")
	j.signal(unix.SIGTERM)
	j.ends(0)
}
