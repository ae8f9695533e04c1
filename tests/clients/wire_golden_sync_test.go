package clients

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/latch"
	"github.com/redlatch/redlatch/ratelimit"
	"github.com/redlatch/redlatch/semaphore"
	"github.com/redlatch/redlatch/tests/internal/golden"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// Semaphores, permits, latches and rate limiters leave in Redis what Redisson's
// do.
func TestWireOfSyncsIsRedissons(t *testing.T) {
	eachGoldenVector(t, []string{"semaphore", "permits", "latch", "rate"}, func(w *locktest.World, v golden.Vector) {
		l := &syncLife{
			goldenLife: newGoldenLife(w, v.Kind, v.Name),
			permits:    map[string]*redlatch.Hold{},
			waits:      map[string]<-chan []*redlatch.Hold{},
		}
		l.random = l.called
		for n, step := range v.Steps {
			if step.Differs != "" {
				t.Log("redlatch differs:", step.Differs)
				break
			}
			l.at = "step " + strconv.Itoa(n+1) + ", " + step.Thread + " " + step.Do
			l.do(step)
			l.compare(asOurs(step), v.WatchdogMs)
		}
	})
}

// A negativeMessage says how many permits a semaphore has that has less than none.
var negativeMessage = regexp.MustCompile(`^(redisson_sc.*) -[0-9]+$`)

// asOurs tells what the step left as if today's Redisson had left it: since 3.21
// records have 16 random bytes instead of 8, since 3.38 limiters a keepAliveTime.
// And as if it let the state that a client has for itself end: redlatch does, an
// interval (here always a minute) and a second after its last use. And it tells of
// no less than no permits, where Redisson's own listeners throw.
func asOurs(s golden.Step) golden.Step {
	for i, m := range s.Messages {
		s.Messages[i] = negativeMessage.ReplaceAllString(m, "$1 0")
	}
	for key, h := range s.After {
		if most := golden.RoundUp(61_000); strings.HasSuffix(key, ":<uuid>") && (h.TTLMs < 0 || h.TTLMs > most) {
			h.TTLMs = most
			s.After[key] = h
		}
		for record, at := range h.Scores {
			delete(h.Scores, record)
			h.Scores[strings.Replace(record, "<record:8:", "<record:16:", 1)] = at
		}
		if h.Fields["rate"] != "" && h.Fields["keepAliveTime"] == "" {
			h.Fields["keepAliveTime"] = "0"
		}
	}
	return s
}

// A syncLife follows one vector of what is not a lock.
type syncLife struct {
	*goldenLife
	permits map[string]*redlatch.Hold // by what golden files call them
	waits   map[string]<-chan []*redlatch.Hold
}

// called returns what golden files call an id or a record.
func (l *syncLife) called(member string) string {
	for name, p := range l.permits {
		if hex.EncodeToString([]byte(member)) == p.ID() {
			return "<" + name + ">"
		}
	}
	if random := len(member) - 5; l.kind == "rate" && random > 0 && int(member[0]) == random {
		return fmt.Sprintf("<record:%d:%d>", random, binary.LittleEndian.Uint32([]byte(member[random+1:])))
	}
	return member
}

// do makes redlatch's counterpart of the call.
func (l *syncLife) do(s golden.Step) {
	l.Helper()
	method, waits := strings.CutPrefix(s.Do, "waits ")
	ctx, leave := context.WithCancel(bg)
	l.Cleanup(leave) // the life may break off before its turn comes
	if waits {
		got, at := make(chan []*redlatch.Hold, 1), l.at
		l.waits[s.Thread] = got
		go func() {
			_, permits, err := l.call(ctx, method, s)
			if err != nil && ctx.Err() == nil {
				l.Errorf("%s: %v", at, err)
			}
			got <- permits
		}()
		synctest.Wait()
		return
	}
	result, permits, err := l.call(ctx, method, s)
	if err != nil {
		result = l.failed(method, err)
	}
	for thread := range strings.FieldsSeq(s.Then) {
		permits = append(permits, <-l.waits[thread]...)
	}
	synctest.Wait()
	if want := s.Result; result != want && !(strings.HasSuffix(want, "Exception") && result == "throws") {
		l.Fatalf("%s: %s, %v, where Redisson says %s", l.at, result, err, want)
	}
	if len(permits) != len(s.Gets) {
		l.Fatalf("%s: %d permits, where Redisson gives %q", l.at, len(permits), s.Gets)
	}
	for i, p := range permits {
		l.permits[s.Gets[i]] = p
	}
}

// failed says what Redisson does where a call fails.
func (l *syncLife) failed(method string, err error) string {
	switch {
	case (l.kind == "permits" || l.kind == "semaphore") && errors.Is(err, redlatch.ErrUninitialized): // Redisson's waits for permits
		return "false"
	case method == "tryRelease" && errors.Is(err, redlatch.ErrNotHeld):
		return "0"
	case method == "config" && errors.Is(err, redlatch.ErrUninitialized):
		return "0"
	case method == "extend" && errors.Is(err, redlatch.ErrNotHeld), errors.Is(err, redlatch.ErrBusy):
		return "false"
	}
	return "throws"
}

// call returns what golden files say of a call's result, and the permits it got.
func (l *syncLife) call(ctx context.Context, method string, s golden.Step) (string, []*redlatch.Hold, error) {
	if method == "pause" {
		time.Sleep(time.Duration(s.WaitMs) * time.Millisecond)
		return "true", nil, nil
	}
	c := l.clients[s.Thread]
	var ok bool
	var n int
	var err error
	switch l.kind {
	case "semaphore":
		ok, n, err = onSemaphore(ctx, semaphore.New(c, l.name, 0), method, s)
	case "latch":
		ok, n, err = onLatch(ctx, latch.New(c, l.name), method, s)
	case "rate":
		ok, n, err = onRate(ctx, ratelimit.New(c, l.name, ratelimit.Rate{}), method, s)
	case "permits":
		if slices.Contains([]string{"acquire", "tryAcquire"}, method) {
			permits, err := acquirePermits(ctx, semaphore.NewExpirable(c, l.name, 0, redlatch.Lease(s.Lease())), method, s)
			return "true", permits, err
		}
		ok, n, err = l.onPermits(ctx, semaphore.NewExpirable(c, l.name, 0), method, s)
	}
	if n == noNumber {
		return strconv.FormatBool(ok), nil, err
	}
	return strconv.Itoa(n), nil, err
}

// noNumber is the number of a call that returns none.
const noNumber = -1 << 30

func did(err error) (bool, int, error) { return true, noNumber, err }

func said(ok bool, err error) (bool, int, error) { return ok, noNumber, err }

func number(n int, err error) (bool, int, error) { return true, n, err }

func onSemaphore(ctx context.Context, s *semaphore.Semaphore, method string, step golden.Step) (bool, int, error) {
	switch method {
	case "acquire":
		return did(s.Acquire(ctx, step.N))
	case "tryAcquire":
		return did(s.TryAcquire(ctx, step.N, 0))
	case "release":
		return did(s.Release(ctx, step.N))
	case "releaseIfExists":
		return said(s.ReleaseIfExists(ctx, step.N))
	case "trySetPermits":
		return said(s.TrySetPermitsFor(ctx, step.N, step.Lease()))
	case "addPermits":
		return did(s.AddPermits(ctx, step.N))
	case "drain":
		return number(s.Drain(ctx))
	case "available":
		return number(s.Available(ctx))
	case "delete":
		return said(s.Delete(ctx))
	}
	return did(unknown(method))
}

func onLatch(ctx context.Context, l *latch.Latch, method string, step golden.Step) (bool, int, error) {
	switch method {
	case "await":
		return did(l.Wait(ctx))
	case "countDown":
		return did(l.CountDown(ctx))
	case "trySetCount":
		return said(l.TrySetCount(ctx, step.N))
	case "count":
		return number(l.Count(ctx))
	case "delete":
		return said(l.Delete(ctx))
	}
	return did(unknown(method))
}

func onRate(ctx context.Context, l *ratelimit.Limiter, method string, step golden.Step) (bool, int, error) {
	r := ratelimit.Rate{
		Permits:   step.N,
		Interval:  time.Duration(step.IntervalMs) * time.Millisecond,
		PerClient: step.PerClient,
		KeepAlive: time.Duration(step.KeepAliveMs) * time.Millisecond,
	}
	switch method {
	case "acquire":
		return did(l.Acquire(ctx, step.N))
	case "tryAcquire":
		return did(l.TryAcquire(ctx, step.N, 0))
	case "trySetRate":
		return said(l.TrySetRate(ctx, r))
	case "setRate":
		return did(l.SetRate(ctx, r))
	case "updateRate":
		err := l.UpdateRate(ctx, r)
		if errors.Is(err, redlatch.ErrUninitialized) {
			return said(false, nil)
		}
		return did(err)
	case "config":
		r, err := l.Config(ctx)
		return number(r.Permits, err)
	case "available":
		return number(l.Available(ctx))
	case "delete":
		return said(l.Delete(ctx))
	}
	return did(unknown(method))
}

// acquirePermits acquires one, or several, of a semaphore whose permits have a
// lease, as Redisson's.
func acquirePermits(ctx context.Context, s *semaphore.Expirable, method string, step golden.Step) ([]*redlatch.Hold, error) {
	if method == "acquire" {
		return locktest.Each(s.Acquire(ctx, step.N))
	}
	return locktest.Each(s.TryAcquire(ctx, step.N, 0))
}

func (l *syncLife) onPermits(ctx context.Context, s *semaphore.Expirable, method string, step golden.Step) (bool, int, error) {
	var ids []string
	for _, called := range step.IDs {
		ids = append(ids, l.permits[called].ID())
	}
	switch method {
	case "release", "tryRelease":
		var err error
		if len(ids) == 1 {
			err = l.permits[step.IDs[0]].Release(ctx)
		} else {
			err = s.Release(ctx, ids...)
		}
		if method == "release" {
			return did(err)
		}
		return number(len(ids), err)
	case "extend":
		return did(l.permits[step.IDs[0]].Extend(ctx, step.Lease()))
	case "trySetPermits":
		return said(s.TrySetPermits(ctx, step.N))
	case "setPermits":
		return did(s.SetPermits(ctx, step.N))
	case "addPermits":
		return did(s.AddPermits(ctx, step.N))
	case "available":
		return number(s.Available(ctx))
	case "acquired":
		return number(s.Acquired(ctx))
	case "permits":
		return number(s.Permits(ctx))
	case "delete":
		return said(s.Delete(ctx))
	}
	return did(unknown(method))
}

func unknown(method string) error { return fmt.Errorf("nothing is known of %q", method) }
