package clients

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/redlatch/redlatch/tests/internal/golden"
)

var anOwner = regexp.MustCompile(`[0-9a-f-]{36}:[0-9]+`)

// plain writes the owners in a text as golden files do.
func (l *goldenLife) plain(text string) string {
	if l.random != nil {
		for _, c := range l.clients {
			text = strings.ReplaceAll(l.random(text), c.ID(), "<uuid>")
		}
	}
	return anOwner.ReplaceAllStringFunc(text, func(owner string) string {
		client, _, _ := strings.Cut(owner, ":")
		for thread, c := range l.clients {
			if c.ID() == client {
				return "<uuid>:<" + thread + ">"
			}
		}
		return owner
	})
}

func (l *goldenLife) plainAll(texts []string) []string {
	all := make([]string, len(texts))
	for i, text := range texts {
		all[i] = l.plain(text)
	}
	return all
}

// compare looks at what the call has left.
func (l *goldenLife) compare(s golden.Step, watchdogMs int64) {
	l.Helper()
	keys := map[string]string{} // ours, by what golden files call them
	for _, key := range l.Keys() {
		if !strings.HasPrefix(key, "redlatch_") { // which only redlatch reads
			keys[l.plain(key)] = key
		}
	}
	if got, want := slices.Sorted(maps.Keys(keys)), slices.Sorted(maps.Keys(s.After)); !slices.Equal(got, want) {
		l.Fatalf("%s leaves the keys %q, Redisson %q", l.at, got, want)
	}
	if _, held := s.After[l.name]; !held {
		l.ttlMs = 0
	}
	for called, want := range s.After {
		key := keys[called]
		if got := l.value(key, want); !same(got, want) && !(l.isFair() && sameEnd(got.Scores, want.Scores)) {
			l.Errorf("%s leaves %+v in %q, Redisson %+v", l.at, got, called, want)
		}
		ttl := l.Server.TTL(key).Milliseconds()
		switch {
		case want.TTLMs < 0:
			if ttl != 0 {
				l.Errorf("%s leaves a TTL of %d ms of %q, Redisson none", l.at, ttl, called)
			}
		case l.random != nil: // no lock
			if up := golden.RoundUp(ttl); up != want.TTLMs {
				l.Errorf("%s leaves a TTL of %d ms of %q, Redisson %d", l.at, ttl, called, want.TTLMs)
			}
		case called == l.name && l.kind != "read" && l.kind != "write":
			l.compareTTL(s, ttl, want.TTLMs*defaultWatchdog.Milliseconds()/watchdogMs)
		case ttl <= 0: // of several holds: the longest lasts at least as long as with Redisson
			l.Errorf("%s leaves no TTL of %q", l.at, called)
		}
	}
	if got := l.published(); !slices.Equal(got, s.Messages) {
		l.Errorf("%s publishes %q, Redisson %q", l.at, got, s.Messages)
	}
	if s.Do != "waits" {
		return // who subscribed has given up, or got in
	}
	channels := l.plainAll(l.Server.PubSubChannels("redisson*"))
	for _, want := range s.Subscribed {
		if !slices.Contains(channels, want) {
			l.Errorf("%s: subscribed is %q, with Redisson %q", l.at, channels, want)
		}
	}
}

// compareTTL knows the one departure: Redisson shortens the TTL at a re-entry
// or partial unlock with a shorter lease, redlatch never does.
func (l *goldenLife) compareTTL(s golden.Step, ttl, want int64) {
	l.Helper()
	if s.Then != "" {
		l.ttlMs = 0 // another hold
	}
	l.ttlMs = max(l.ttlMs, want)
	if up := golden.RoundUp(ttl); up != l.ttlMs {
		l.Errorf("%s leaves a TTL of %d ms, Redisson %d", l.at, ttl, l.ttlMs)
	}
}

// value returns what stands at a key that should be of the type of want.
func (l *goldenLife) value(key string, want golden.Hash) (got golden.Hash) {
	l.Helper()
	var err error
	switch {
	case want.Value != "":
		got.Value, err = l.Server.Get(key)
	case want.List != nil:
		got.List, err = l.Server.List(key)
		got.List = l.plainAll(got.List)
	case want.Scores != nil:
		var scores map[string]float64
		scores, err = l.Server.SortedSet(key)
		got.Scores = map[string]string{}
		for owner, score := range scores {
			from := score - float64(time.Now().UnixMilli())
			got.Scores[l.plain(owner)] = fmt.Sprintf("<now>%+d", 10_000*int64(math.Round(from/10_000)))
		}
	default:
		var fields []string
		fields, err = l.Server.HKeys(key)
		got.Fields = map[string]string{}
		for _, f := range fields {
			got.Fields[l.plain(f)] = l.Server.HGet(key, f)
		}
	}
	if err != nil {
		l.Fatalf("%s: %v", l.at, err)
	}
	return got
}

func same(got, want golden.Hash) bool {
	return maps.Equal(got.Fields, want.Fields) && slices.Equal(got.List, want.List) &&
		maps.Equal(got.Scores, want.Scores) && got.Value == want.Value
}

func (l *goldenLife) isFair() bool { return l.kind == "fair" || l.kind == "nonreentrantfair" }

// sameEnd knows another departure: while all who wait for a fair lock are of
// redlatch, the last one has Redisson's score. Any other has no higher one, and at
// least five minutes.
func sameEnd(got, want map[string]string) bool {
	last := int64(0)
	for _, text := range want {
		last = max(last, sinceNow(text))
	}
	for owner, text := range want {
		mine := sinceNow(got[owner])
		if ms := sinceNow(text); mine > ms || mine < 300_000 || ms == last && mine != last {
			return false
		}
	}
	return len(got) == len(want)
}

// sinceNow reads a score as golden files have it; 0 if it is none.
func sinceNow(text string) (ms int64) {
	_, _ = fmt.Sscanf(text, "<now>%d", &ms)
	return ms
}

// published returns what others can hear, since the last call: not what clients
// of redlatch say to each other.
func (l *goldenLife) published() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := slices.DeleteFunc(l.plainAll(l.messages), func(m string) bool { return strings.HasPrefix(m, "redlatch_control:") })
	l.messages = nil
	if l.isFair() {
		all = slices.Compact(all) // whose turn it is may be told twice
	}
	return all
}

// shareReads tells what Redisson leaves as redlatch would: the readers of one
// client share one hold, which is counted once and has one key to time out.
func shareReads(after map[string]golden.Hash) {
	for key, h := range after {
		if _, n, numbered := strings.Cut(key, ":rwlock_timeout:"); numbered && n != "1" {
			delete(after, key)
			continue
		}
		if h.Fields["mode"] == "" {
			continue
		}
		for field := range h.Fields {
			if field != "mode" && !strings.HasSuffix(field, ":write") {
				h.Fields[field] = "1"
			}
		}
	}
}
