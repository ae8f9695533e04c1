package fence_test

import (
	"context"
	"errors"
	"testing"
	"time"

	goredisclient "github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/faultnet"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/redlatchgoredis"
	"github.com/redlatch/redlatch/redlatchrueidis"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// generous is how long anything may take on a busy machine.
const generous = time.Minute

// timeout is as long as drivers may take for a request: nothing here waits for it.
const timeout = generous

// persistent sends again what has certainly not been executed: go-redis takes
// three seconds at most to connect, and a busy machine more.
type persistent struct{ driver.Redis }

func (p persistent) Run(ctx context.Context, s *driver.Script, keys, args []string) (driver.Reply, error) {
	for end := time.Now().Add(generous); ; {
		reply, err := p.Redis.Run(ctx, s, keys, args)
		var re *driver.RunError
		if !errors.As(err, &re) || re.Outcome != driver.NotExecuted || re.Code != "" || time.Now().After(end) {
			return reply, err
		}
	}
}

var drivers = map[string]func(tb testing.TB, addr string) driver.Redis{"goredis": useGoredis, "rueidis": useRueidis}

func useGoredis(tb testing.TB, addr string) driver.Redis {
	tb.Helper()
	rdb := goredisclient.NewClient(&goredisclient.Options{Addr: addr, DialTimeout: timeout, ReadTimeout: timeout, WriteTimeout: timeout})
	tb.Cleanup(func() { _ = rdb.Close() })
	return persistent{redlatchgoredis.Use(rdb)}
}

func useRueidis(tb testing.TB, addr string) driver.Redis {
	tb.Helper()
	d, err := redlatchrueidis.New(rueidis.ClientOption{InitAddress: []string{addr}, ForceSingleClient: true, ConnWriteTimeout: timeout})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = d.Close() })
	return d
}

func TestKeyOnServers(t *testing.T) {
	t.Parallel()
	for _, kind := range testserver.Kinds() {
		for name, use := range drivers {
			t.Run(string(kind)+"/"+name, func(t *testing.T) {
				t.Parallel()
				server := testserver.Start(t, kind)
				r := use(t, server.Addr())
				theRule(t, r, "state")
				otherTypes(t, r)
				hammer(t, r, 25)
				p := faultnet.New(server.Dial)
				t.Cleanup(p.Close)
				addr, err := p.Listen()
				if err != nil {
					t.Fatal(err)
				}
				faults(t, r, p, use(t, addr))
			})
		}
	}
}

// A writer that repeats what it heard no answer to, because the reply was lost or
// the request is on its way still, gets what it asked for and keeps it.
func faults(t *testing.T, direct driver.Redis, p *faultnet.Proxy, through driver.Redis) {
	t.Helper()
	const name = "written"
	k := newKey(t, through, name)
	wantUnknown := func(err error) {
		t.Helper()
		var re *driver.RunError
		if !errors.As(err, &re) || re.Outcome != driver.Unknown || !redlatch.IsRetryable(err) {
			t.Errorf("got %v, want an unknown outcome", err)
		}
	}
	want := func(when, v string) {
		t.Helper()
		if got := value(t, direct, name); got != v {
			t.Errorf("%s there is %q, want %q", when, got, v)
		}
	}
	write := func(token int64, v string) {
		t.Helper()
		if err := k.Set(bg, token, v, 0); err != nil {
			t.Fatal(err)
		}
	}

	write(20, "first")
	p.SetRule(faultnet.First(isScript, faultnet.DropReply))
	wantUnknown(k.Set(bg, 20, "unheard", 0))
	want("after a lost reply", "unheard")
	write(20, "again")

	p.SetRule(faultnet.First(isScript, faultnet.Duplicate))
	write(20, "once")
	want("after a doubled request", "once")

	var held faultnet.Held
	p.SetRule(faultnet.First(isScript, faultnet.Hold(&held)))
	wantUnknown(k.Set(bg, 20, "late", 0))
	deliver := func(reply string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(bg, generous)
		defer cancel()
		if got, err := held.Deliver(ctx); err != nil || got != reply {
			t.Errorf("the late request was answered %q (%v), want %q", got, err, reply)
		}
	}
	deliver(":1\r\n")
	want("as long as nothing else was written", "late")
	write(20, "after it")
	deliver(":1\r\n")
	want("when it comes again", "after it")
	if err := k.Delete(bg, 20); err != nil {
		t.Fatal(err)
	}
	deliver(":1\r\n")
	want("after a Delete", "")
	if _, _, err := k.Get(bg, 21); err != nil {
		t.Fatal(err)
	}
	deliver("$2\r\n21\r\n")
	want("after the successor's Get", "")
}

func TestKeyInCluster(t *testing.T) {
	locktest.Long(t)
	t.Parallel()
	c := testserver.StartCluster(t, testserver.Redis)
	rdb := goredisclient.NewClusterClient(&goredisclient.ClusterOptions{Addrs: c.Addrs(), DialTimeout: timeout, ReadTimeout: timeout, WriteTimeout: timeout})
	t.Cleanup(func() { _ = rdb.Close() })
	for _, name := range []string{"state", "other", "orders:{42}:state"} {
		theRule(t, persistent{redlatchgoredis.Use(rdb)}, name)
	}
}
