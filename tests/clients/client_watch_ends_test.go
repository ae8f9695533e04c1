package clients

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/tests/internal/drivers"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// A watch outlasts an outage: it says once that it cannot look, and then what has
// changed.
func TestWatchTellsOfAnOutageOnceAndGoesOn(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		v := view(w.T, w.Client(redlatch.Config{OutageTimeout: 10 * time.Second}), "orders")
		h := w.Acquire(bg, w.Client(redlatch.Config{}).Lock("orders", redlatch.Lease(time.Hour)))
		v.wants("acquired", "acquired by "+h.ID())
		w.Server.SetError("LOADING Redis is loading the dataset in memory")
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := len(v.seen); n != 1 {
			t.Fatalf("%d were seen in a minute's outage", n)
		}
		if x := <-v.seen; !errors.Is(x.err, redlatch.ErrUnavailable) || x.What != "" {
			t.Errorf("%+v", x)
		}
		w.Server.SetError("")
		w.Server.Del("orders")
		if x := v.wants("again", "begins", "released by "+h.ID()); x.Info.Held() {
			t.Errorf("%+v", x)
		}
		w.OK(w.Server.Set("orders", "no number")) // it is something else
		time.Sleep(10 * time.Second)
		synctest.Wait()
		var other *driver.RunError
		if x := <-v.seen; !errors.As(x.err, &other) || other.Code != "WRONGTYPE" || len(v.seen) != 0 {
			t.Errorf("%+v, and %d more", x, len(v.seen))
		}
		w.Server.Del("orders")
		v.wants("a lock again", "begins")
		v.ends()
		<-h.Context().Done()
	})
}

func TestWatchEnds(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		for n := range 3 { // out of the loop: at once, and while it asks the clients
			for _, err := range admin.New(c).Watch(bg, "orders") {
				w.OK(err)
				if n--; n < 0 {
					break
				}
				w.Release(w.Acquire(bg, c.Lock("orders")))
				h := w.Acquire(bg, c.Lock("orders"))
				time.AfterFunc(time.Second, func() { w.Release(h) })
			}
		}
		synctest.Wait()
		if left := w.Server.PubSubChannels("redlatch_answer"); len(left) > 0 {
			t.Errorf("it still listens: %q", left)
		}
		for name, of := range map[string]struct {
			ctx  context.Context
			name string
			want error
		}{"no context": {nil, "orders", redlatch.ErrInvalid}, "no name": {bg, "{", redlatch.ErrInvalid}} {
			n := 0
			for x, err := range admin.New(c).Watch(of.ctx, of.name) {
				n++
				if !errors.Is(err, of.want) || x.What != "" {
					t.Errorf("%s: %+v, %v", name, x, err)
				}
			}
			if n != 1 {
				t.Errorf("%s: %d changes", name, n)
			}
		}
		v := view(w.T, c, "orders")
		time.Sleep(7300 * time.Millisecond) // in the middle of a pause
		w.OK(c.Close())
		<-v.over
		var last seen
		for len(v.seen) > 0 {
			last = <-v.seen
		}
		w.WantErr(last.err, redlatch.ErrClosed)
		for _, err := range admin.New(c).Watch(bg, "orders") {
			w.WantErr(err, redlatch.ErrClosed)
		}
	})
}

// A caller that takes its time misses what came and went, and then sees how it is.
func TestASlowWatcherMissesOnlyWhatIsOver(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c, watcher := w.Client(redlatch.Config{}), w.Client(redlatch.Config{})
		ctx, cancel := context.WithCancel(bg)
		defer cancel()
		var got []string
		var last *redlatch.Hold
		for x, err := range admin.New(watcher).Watch(ctx, "orders") {
			w.OK(err)
			x.Holder.By = ""
			got = append(got, x.String())
			if x.What == admin.ChangeAcquired {
				cancel()
				continue
			}
			for range 100 {
				w.Release(w.Acquire(bg, c.Lock("orders")))
				time.Sleep(time.Second)
			}
			last = w.Acquire(bg, c.Lock("orders"))
		}
		if want := "begins, acquired by " + last.ID(); strings.Join(got, ", ") != want {
			t.Errorf("%q, want %q", got, want)
		}
		w.Release(last)
	})
}

// A user that may not ask the clients is told so once, and still sees what Redis
// has. Who waits is seen again when the user may ask.
func TestWatchWithoutTheRightToAskLooks(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		var may atomic.Bool
		var asked atomic.Int32
		watcher := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: func(s string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
			if s == "client.ask" && !may.Load() {
				asked.Add(1)
				return driver.Reply{}, &driver.RunError{Outcome: driver.Refused, Code: "NOPERM", Err: errors.New("NOPERM no channel for you")}
			}
			return next()
		}})
		c, v := w.Client(redlatch.Config{}), view(w.T, watcher, "orders")
		v.nameless = true // until there are notes
		time.Sleep(time.Minute)
		synctest.Wait()
		if x := <-v.seen; x.err == nil || !strings.Contains(x.err.Error(), "NOPERM") || len(v.seen) > 0 {
			t.Errorf("%+v, and %d more", x, len(v.seen))
		}
		h := w.Acquire(bg, c.Lock("orders"))
		if x := v.wants("acquired", "acquired by "+h.ID()); x.Waiting != -1 {
			t.Errorf("%+v", x)
		}
		w.Release(h)
		v.wants("released", "released by "+h.ID())
		time.Sleep(time.Hour)
		v.wants("nothing is new")
		if n := asked.Load(); n < 2 || n > 20 {
			t.Errorf("the server has refused it %d times in an hour", n)
		}
		may.Store(true)
		time.Sleep(6 * time.Minute)
		v.nameless = false
		h = w.Acquire(bg, w.Client(redlatch.Config{}).Lock("orders"))
		waiter := locktest.Acquiring(c.Lock("orders"))
		v.wants("it may ask", "acquired by "+h.ID(), "1 waiting")
		w.Release(h)
		next := w.Got(waiter)
		v.wants("passed on", "released by "+h.ID(), "acquired by "+next.ID(), "0 waiting")
		w.Release(next)
		v.wants("free", "released by "+next.ID())
		v.ends()
	})
}

// What a client of Redisson does is seen on each server, and who watches is no
// listener of the lock's.
func TestOnRealServersWatchSeesRedisson(t *testing.T) {
	locktest.OnRealServers(t, func(t *testing.T, s *testserver.Server) {
		v := view(t, locktest.ClientOf(t, drivers.Goredis.Open(t, drivers.Single(s.Addr())), redlatch.Config{}), "orders")
		wants := func(line string) admin.Change {
			t.Helper()
			select {
			case x := <-v.seen:
				if x.err != nil || x.String() != line {
					t.Fatalf("%v, %v, want %q", x.Change, x.err, line)
				}
				return x.Change
			case <-time.After(locktest.Generous):
				t.Fatalf("want %q", line)
			}
			return admin.Change{}
		}
		raw := locktest.RawGoredis(t, s)
		eval := func(script string, args ...any) {
			t.Helper()
			if err := raw.Eval(t.Context(), script, []string{"orders", "redisson_lock__channel:{orders}"}, args...).Err(); err != nil {
				t.Fatal(err)
			}
		}
		const lock = "redis.call('hset', KEYS[1], ARGV[1], 1); return redis.call('pexpire', KEYS[1], ARGV[2])"
		eval(lock, locktest.JavaOwner, 60000)
		if x := wants("acquired by " + locktest.JavaOwner); x.Holder.Redlatch || x.Info.Kind != redlatch.KindLock {
			t.Errorf("%+v", x)
		}
		heard := raw.Subscribe(t.Context(), "redisson_lock__channel:{orders}") // a thread of Redisson's waits
		wants("1 waiting")
		eval("redis.call('del', KEYS[1]); return redis.call('publish', KEYS[2], '0')")
		wants("released by " + locktest.JavaOwner)
		eval(lock, locktest.JavaOwner2, 2000)
		wants("acquired by " + locktest.JavaOwner2)
		wants("expired by " + locktest.JavaOwner2)
		_ = heard.Close()
		wants("0 waiting")
		if listening := raw.PubSubChannels(t.Context(), "redisson*").Val(); len(listening) > 0 {
			t.Errorf("somebody listens: %q", listening)
		}
		v.ends()
	})
}
