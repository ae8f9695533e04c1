package clients

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/redisson"
	"github.com/redlatch/redlatch/tests/internal/golden"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// redlatch leaves in Redis what Redisson does: keys, fields, counts, TTLs,
// channels and messages.
func TestWireIsRedissons(t *testing.T) {
	eachGoldenVector(t, []string{"redisson", "fenced", "spin", "fair", "readwrite"}, func(w *locktest.World, v golden.Vector) {
		l := newGoldenLife(w, v.Kind, v.Name)
		for n, step := range v.Steps {
			if step.Differs != "" {
				t.Log("redlatch differs:", step.Differs)
				break // and so does all that follows
			}
			l.at = "step " + strconv.Itoa(n+1) + ", " + step.Thread + " " + step.Do
			shareReads(step.After)
			l.do(step)
			l.compare(step, v.WatchdogMs)
		}
	})
}

// eachGoldenVector tells every vector of the golden files of some kinds.
func eachGoldenVector(t *testing.T, kinds []string, tell func(w *locktest.World, v golden.Vector)) {
	t.Helper()
	var files []string
	for _, kind := range kinds {
		of, err := filepath.Glob(golden.Dir + kind + "-*.json")
		if err != nil || len(of) == 0 {
			t.Fatalf("golden files of %s: %q, %v", kind, of, err)
		}
		files = append(files, of...)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var g golden.File
		if err := json.Unmarshal(text, &g); err != nil {
			t.Fatal(err)
		}
		if len(g.Vectors) == 0 {
			t.Fatalf("%s has no vectors", file)
		}
		for i, v := range g.Vectors {
			t.Run(strings.Join([]string{g.Redisson, strconv.Itoa(i), v.Kind, v.Name}, "/"), func(t *testing.T) {
				locktest.InFakeTime(t, func(w *locktest.World) { tell(w, v) })
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
	*locktest.World
	at      string // where we are, for messages
	kind    string
	name    string
	clients map[string]*redlatch.Client
	holds   map[string][]goldenHold // by thread
	waits   map[string]<-chan goldenHold
	random  func(text string) string // names what is random besides owners, if not nil
	ttlMs   int64                    // the highest TTL of this hold so far, by the golden file

	mu       sync.Mutex
	messages []string
}

type goldenHold struct {
	*redlatch.Hold
	kind string
}

func newGoldenLife(w *locktest.World, kind, name string) *goldenLife {
	l := &goldenLife{
		World: w, kind: kind, name: name,
		clients: map[string]*redlatch.Client{},
		holds:   map[string][]goldenHold{},
		waits:   map[string]<-chan goldenHold{},
	}
	for _, thread := range []string{"t1", "t2", "t3", "t4"} {
		l.clients[thread] = w.Client(redlatch.Config{WatchdogTimeout: defaultWatchdog})
	}
	w.Listen(func(channel, text string) {
		l.mu.Lock()
		l.messages = append(l.messages, channel+" "+text)
		l.mu.Unlock()
	}, "*")
	return l
}

// lock returns what a thread locks.
func (l *goldenLife) lock(thread, kind string) *redlatch.Lock {
	c := l.clients[thread]
	switch kind {
	case "nonreentrant":
		return c.Lock(l.name, redlatch.NonReentrant())
	case "fenced":
		return c.Lock(l.name, redlatch.Fenced())
	case "spin":
		return redisson.SpinLock(c, l.name, nil)
	case "fair":
		return c.FairLock(l.name)
	case "nonreentrantfair":
		return c.FairLock(l.name, redlatch.NonReentrant())
	case "read":
		return c.ReadWriteLock(l.name).Read()
	case "write":
		return c.ReadWriteLock(l.name).Write()
	default:
		return c.Lock(l.name)
	}
}

// do makes redlatch's counterpart of the call.
func (l *goldenLife) do(s golden.Step) {
	l.Helper()
	kind := cmp.Or(s.Kind, l.kind)
	lock, holds := l.lock(s.Thread, kind), l.holds[s.Thread]
	ctx := context.Background()
	if n := len(holds); n > 0 {
		ctx = holds[n-1].Context() // what a thread holds it re-enters
	}
	var opts []redlatch.PlainOption
	if s.LeaseMs > 0 {
		opts = append(opts, redlatch.Lease(time.Duration(s.LeaseMs)*time.Millisecond))
	}
	switch s.Do {
	case "lock", "tryLock", "lockAndGetToken", "tryLockAndGetToken":
		h, err := l.try(lock, ctx, s, opts)
		switch {
		case s.Result == "true" && err == nil:
			l.holds[s.Thread] = append(holds, goldenHold{h, kind})
			if s.Token != 0 && h.Token() != s.Token {
				l.Errorf("%s: token %d, where Redisson says %d", l.at, h.Token(), s.Token)
			}
		case s.Result == "false" && errors.Is(err, redlatch.ErrBusy):
		case s.Result == "false" && kind == "write" && errors.Is(err, redlatch.ErrReentry): // Redisson's would wait for itself
		case s.Result == "IllegalMonitorStateException" && errors.Is(err, redlatch.ErrReentry):
		default:
			l.Fatalf("%s: %v, where Redisson says %s", l.at, err, s.Result)
		}
	case "unlock":
		for i, h := range slices.Backward(holds) { // if there is none: Redisson throws
			if h.kind == kind {
				l.Release(h.Hold)
				l.holds[s.Thread] = slices.Delete(holds, i, i+1)
				break
			}
		}
	case "forceUnlock":
		ok, err := admin.ForceRelease(ctx, lock)
		if err != nil || strconv.FormatBool(ok) != s.Result {
			l.Fatalf("%s: %v, %v, where Redisson says %s", l.at, ok, err, s.Result)
		}
		if !ok {
			break
		}
		for _, lost := range l.holds {
			for _, h := range lost {
				l.WantErr(h.Release(context.Background()), redlatch.ErrLost)
			}
		}
		clear(l.holds)
	case "waits":
		waits := make(chan goldenHold, 1)
		ctx, leave := context.WithCancel(ctx)
		at := l.at
		l.Cleanup(leave) // the life may break off before its turn comes
		if s.LeaseMs == 0 && strings.Contains(kind, "fair") {
			// A waiter that the watchdog is to serve would be given the lock, which
			// Redisson's release does not do.
			opts = append(opts, redlatch.Lease(defaultWatchdog))
		}
		go func() {
			h, err := locktest.With(lock, opts...).Acquire(ctx)
			if err != nil && ctx.Err() == nil {
				l.Errorf("%s: %v", at, err)
			}
			waits <- goldenHold{h, kind}
		}()
		l.waits[s.Thread] = waits
	case "getToken": // which is the last hold's, or the key's
	case "renewal":
		time.Sleep(defaultWatchdog/3 + 100*time.Millisecond)
	default:
		l.Fatalf("%s is no call that this test knows", l.at)
	}
	for thread := range strings.FieldsSeq(s.Then) {
		l.holds[thread] = append(l.holds[thread], <-l.waits[thread])
	}
	synctest.Wait()
}

// try tries once, or for as long as the step says.
func (l *goldenLife) try(lock *redlatch.Lock, ctx context.Context, s golden.Step, opts []redlatch.PlainOption) (*redlatch.Hold, error) {
	if s.WaitMs == 0 {
		h, err := locktest.With(lock, opts...).TryAcquire(ctx, 0)
		var busy *redlatch.BusyError
		if errors.As(err, &busy) && busy.Owed > 0 {
			time.Sleep(5 * time.Millisecond) // to others, to whom this one has just released it
			return locktest.With(lock, opts...).TryAcquire(ctx, 0)
		}
		return h, err
	}
	return locktest.With(lock, opts...).TryAcquire(ctx, time.Duration(s.WaitMs)*time.Millisecond)
}
