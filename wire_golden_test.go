package redlatch_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
)

// A golden file says what one version of Redisson does to Redis, call by call:
// tests/interop records it from the real one. Of what it says, this reads what
// redlatch must do as well.
type golden struct {
	Redisson string         `json:"redisson"`
	Vectors  []goldenVector `json:"vectors"`
}

type goldenVector struct {
	Kind       string       `json:"kind"`
	Name       string       `json:"name"`
	WatchdogMs int64        `json:"watchdogMs"`
	Steps      []goldenStep `json:"steps"`
}

type goldenStep struct {
	Do         string                `json:"do"`
	Thread     string                `json:"thread"`
	Kind       string                `json:"kind"`    // if it is not the vector's
	LeaseMs    int64                 `json:"leaseMs"` // 0: the watchdog keeps it
	Result     string                `json:"result"`  // true, false, or an exception
	Token      int64                 `json:"token"`   // what it returned, of a fenced lock
	Differs    string                `json:"differs"` // redlatch does otherwise, and why
	Then       string                `json:"then"`    // the thread whose wait the call ended
	Subscribed []string              `json:"subscribed"`
	Messages   []string              `json:"messages"` // channel and payload
	After      map[string]goldenHash `json:"after"`
}

type goldenHash struct {
	Fields map[string]string `json:"fields"`
	Value  string            `json:"value"` // if it is a string
	TTLMs  int64             `json:"ttlMs"` // rounded up: to a second, or above ten to ten
}

// redlatch leaves in Redis what Redisson does: keys, fields, counts, TTLs,
// channels and messages.
func TestWireIsRedissons(t *testing.T) {
	var files []string
	for _, kinds := range []string{"redisson", "fenced", "spin"} {
		of, err := filepath.Glob("internal/wire/testdata/" + kinds + "-*.json")
		if err != nil || len(of) == 0 {
			t.Fatalf("golden files of %s: %q, %v", kinds, of, err)
		}
		files = append(files, of...)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var g golden
		if err := json.Unmarshal(text, &g); err != nil {
			t.Fatal(err)
		}
		if len(g.Vectors) == 0 {
			t.Fatalf("%s has no vectors", file)
		}
		for i, v := range g.Vectors {
			t.Run(strings.Join([]string{g.Redisson, strconv.Itoa(i), v.Kind, v.Name}, "/"), func(t *testing.T) {
				inFakeTime(t, func(w *world) {
					l := newGoldenLife(w, v.Kind, v.Name)
					for n, step := range v.Steps {
						if step.Differs != "" {
							t.Log("redlatch differs:", step.Differs)
							break // and so does all that follows
						}
						l.at = "step " + strconv.Itoa(n+1) + ", " + step.Thread + " " + step.Do
						l.do(step)
						l.compare(step, v.WatchdogMs)
					}
				})
			})
		}
	}
}

// defaultWatchdog is redlatch's and Redisson's. A life that was recorded with
// another one is told in proportion.
const defaultWatchdog = 30 * time.Second

// A goldenLife follows one vector. Each thread of Redisson is a client here:
// threads of one Redisson client meet in Redis, goroutines of one redlatch
// client do not.
type goldenLife struct {
	*world
	at      string // where we are, for messages
	name    string
	clients map[string]*redlatch.Client
	locks   map[string]*redlatch.Lock
	holds   map[string][]*redlatch.Hold
	waits   map[string]<-chan *redlatch.Hold
	ttlMs   int64 // the highest TTL of this hold so far, by the golden file

	mu       sync.Mutex
	messages []string
}

func newGoldenLife(w *world, kind, name string) *goldenLife {
	l := &goldenLife{
		world: w, name: name,
		clients: map[string]*redlatch.Client{},
		locks:   map[string]*redlatch.Lock{},
		holds:   map[string][]*redlatch.Hold{},
		waits:   map[string]<-chan *redlatch.Hold{},
	}
	for _, thread := range []string{"t1", "t2"} {
		c := w.client(redlatch.Config{WatchdogTimeout: defaultWatchdog})
		l.clients[thread] = c
		switch kind {
		case "nonreentrant":
			l.locks[thread] = c.NonReentrantLock(name)
		case "fenced":
			l.locks[thread] = c.FencedLock(name)
		case "spin":
			l.locks[thread] = c.SpinLock(name, nil)
		default:
			l.locks[thread] = c.Lock(name)
		}
	}
	sub := w.server.NewSubscriber()
	sub.Psubscribe("*")
	over := make(chan struct{})
	go func() {
		for {
			select {
			case m := <-sub.Pmessages():
				l.mu.Lock()
				l.messages = append(l.messages, m.Channel+" "+m.Message)
				l.mu.Unlock()
			case <-over:
				return
			}
		}
	}()
	w.Cleanup(func() {
		close(over)
		sub.Close()
	})
	return l
}

// do makes redlatch's counterpart of the call.
func (l *goldenLife) do(s goldenStep) {
	l.Helper()
	lock, holds := l.locks[s.Thread], l.holds[s.Thread]
	if s.Kind != "" {
		lock = l.clients[s.Thread].Lock(l.name) // the only one that lives mix in
	}
	ctx := context.Background()
	if n := len(holds); n > 0 {
		ctx = holds[n-1].Context() // what a thread holds it re-enters
	}
	var opts []redlatch.Option
	if s.LeaseMs > 0 {
		opts = append(opts, redlatch.Lease(time.Duration(s.LeaseMs)*time.Millisecond))
	}
	switch s.Do {
	case "lock", "tryLock", "lockAndGetToken", "tryLockAndGetToken":
		h, err := lock.Try(ctx, opts...)
		switch {
		case s.Result == "true" && err == nil:
			l.holds[s.Thread] = append(holds, h)
			if s.Token != 0 && h.Token() != s.Token {
				l.Errorf("%s: token %d, where Redisson says %d", l.at, h.Token(), s.Token)
			}
		case s.Result == "false" && errors.Is(err, redlatch.ErrBusy):
		case s.Result == "IllegalMonitorStateException" && errors.Is(err, redlatch.ErrReentry):
		default:
			l.Fatalf("%s: %v, where Redisson says %s", l.at, err, s.Result)
		}
	case "unlock":
		if len(holds) == 0 {
			break // nothing to call Release of: Redisson throws
		}
		l.release(holds[len(holds)-1])
		l.holds[s.Thread] = holds[:len(holds)-1]
	case "forceUnlock":
		ok, err := lock.ForceRelease(ctx)
		if err != nil || strconv.FormatBool(ok) != s.Result {
			l.Fatalf("%s: %v, %v, where Redisson says %s", l.at, ok, err, s.Result)
		}
		for _, lost := range l.holds {
			for _, h := range lost {
				l.wantErr(h.Release(context.Background()), redlatch.ErrLost)
			}
		}
		clear(l.holds)
	case "waits":
		l.waits[s.Thread] = later(func() *redlatch.Hold { return l.acquire(lock, ctx, opts...) })
	case "getToken": // which is the last hold's, or the key's
	case "renewal":
		time.Sleep(defaultWatchdog/3 + 100*time.Millisecond)
	default:
		l.Fatalf("%s is no call that this test knows", l.at)
	}
	if s.Then != "" {
		l.holds[s.Then] = append(l.holds[s.Then], <-l.waits[s.Then])
	}
	synctest.Wait()
}

// roundUp rounds a TTL as golden files have it.
func roundUp(ttl int64) int64 {
	unit := int64(1000)
	if ttl > 10*unit {
		unit *= 10
	}
	return (ttl + unit - 1) / unit * unit
}

var ownerNumber = regexp.MustCompile(`^[0-9]+$`)

// plain writes an owner field of ours as golden files do.
func (l *goldenLife) plain(field string) string {
	client, n, _ := strings.Cut(field, ":")
	for thread, c := range l.clients {
		if c.ID() == client && ownerNumber.MatchString(n) {
			return "<uuid>:<" + thread + ">"
		}
	}
	return field
}

// compare looks at what the call has left.
func (l *goldenLife) compare(s goldenStep, watchdogMs int64) {
	l.Helper()
	keys := l.server.Keys()
	if want := slices.Sorted(maps.Keys(s.After)); !slices.Equal(keys, want) {
		l.Fatalf("%s leaves the keys %q, Redisson %q", l.at, keys, want)
	}
	if _, held := s.After[l.name]; !held {
		l.ttlMs = 0
	}
	for key, want := range s.After {
		if want.Value != "" {
			if got, err := l.server.Get(key); err != nil || got != want.Value || l.server.TTL(key) != 0 {
				l.Errorf("%s leaves %q in %q, TTL %v, %v, Redisson %q", l.at, got, key, l.server.TTL(key), err, want.Value)
			}
			continue
		}
		fields, err := l.server.HKeys(key)
		if err != nil {
			l.Fatalf("%s: %v", l.at, err)
		}
		got := map[string]string{}
		for _, f := range fields {
			got[l.plain(f)] = l.server.HGet(key, f)
		}
		if !maps.Equal(got, want.Fields) {
			l.Errorf("%s leaves %v in %q, Redisson %v", l.at, got, key, want.Fields)
		}
		// The one departure: Redisson shortens the TTL at a re-entry or partial
		// unlock with a shorter lease, redlatch never does.
		if s.Then != "" {
			l.ttlMs = 0 // another hold
		}
		l.ttlMs = max(l.ttlMs, want.TTLMs*defaultWatchdog.Milliseconds()/watchdogMs)
		ttl := l.server.TTL(key).Milliseconds()
		if up := roundUp(ttl); up != l.ttlMs {
			l.Errorf("%s leaves a TTL of %d ms, Redisson %d", l.at, ttl, l.ttlMs)
		}
	}
	if got := l.published(); !slices.Equal(got, s.Messages) {
		l.Errorf("%s publishes %q, Redisson %q", l.at, got, s.Messages)
	}
	channels := l.server.PubSubChannels("redisson*")
	for _, want := range s.Subscribed {
		if !slices.Contains(channels, want) {
			l.Errorf("%s: subscribed is %q, with Redisson %q", l.at, channels, want)
		}
	}
}

// published returns what others can hear, since the last call: not what clients
// of redlatch say to each other.
func (l *goldenLife) published() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.messages
	l.messages = nil
	return slices.DeleteFunc(all, func(m string) bool { return strings.HasPrefix(m, "redlatch_control:") })
}
