package clients

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/internal/wire"
	"github.com/redlatch/redlatch/tests/internal/drivers"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// everybody returns a client by each adapter, and waits until each hears all, with
// nobody silent.
func everybody(t *testing.T, p drivers.Place) (all []*redlatch.Client) {
	t.Helper()
	for _, adapter := range drivers.Adapters {
		all = append(all, locktest.ClientOf(t, adapter.Open(t, p), redlatch.Config{Identity: redlatch.Identity{Name: adapter.Name}}))
	}
	for _, c := range all {
		var last admin.Participants
		heard := locktest.Within(locktest.Generous, func() bool {
			var err error
			if last, err = admin.New(c).Participants(t.Context(), admin.Question{}); err != nil {
				t.Log(err)
				return false
			}
			names := map[string]bool{}
			for _, x := range last.Clients {
				names[x.Identity.Name] = x.Answered
			}
			return len(names) == len(drivers.Adapters) && names["goredis"] && names["rueidis"] && names["valkeygo"] && last.Silent == 0
		})
		if !heard {
			t.Fatalf("%s hears %+v", c.ID(), last)
		}
	}
	return all
}

// Whatever somebody sends who may use locks, all are heard, and no hold ends.
func TestOnRealServersNoiseHidesNobody(t *testing.T) {
	locktest.OnRealServers(t, func(t *testing.T, s *testserver.Server) {
		all := everybody(t, drivers.Single(s.Addr()))
		h, err := all[0].Lock("orders").Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		raw := locktest.RawGoredis(t, s)
		noise, quiet := context.WithCancel(t.Context())
		sent := locktest.Later(func() error { return makeNoise(noise, raw) })
		var p admin.Participants
		heard := locktest.Within(locktest.Generous, func() bool {
			p, err = admin.New(all[1]).Participants(t.Context(), admin.Question{Names: []string{"orders"}})
			return err == nil && len(p.Clients) == len(all) && p.Silent == 0
		})
		quiet()
		if err := <-sent; err != nil {
			t.Error(err)
		}
		if !heard || len(p.Objects) != 1 || len(p.Objects[0].Holders) != 1 || p.Objects[0].Holders[0].Owner != h.ID() {
			t.Errorf("%+v, %v", p, err)
		}
		if err := h.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// makeNoise sends answers without an end, and a few questions a second: with more
// of them somebody would flood, who may silence others for that second.
func makeNoise(ctx context.Context, raw *redis.Client) error {
	for i := 0; ctx.Err() == nil; i++ {
		texts := map[string][]string{wire.Answers: {
			"nonsense", `{"v":1,"names":[7]}`, `{"v":1,"client":"` + wire.NewClientID() + `","for":["x"],"claims":[{"name":"\u001b[2J","ago":1}]}`,
		}}
		if i%20 == 0 {
			texts[wire.Answers] = append(texts[wire.Answers], strings.Repeat("x", 20<<10))
		}
		if i%500 == 0 {
			texts[wire.Asked] = []string{"nonsense", strings.Repeat("x", 20<<10), `{"v":1,"key":"K","names":[7]}`, fmt.Sprintf(`{"v":1,"key":"K%d","glob":"%d*"}`, i, i)}
		}
		for channel, texts := range texts {
			for _, text := range texts {
				if err := raw.Publish(ctx, channel, text).Err(); err != nil && ctx.Err() == nil {
					return err
				}
			}
		}
		time.Sleep(time.Millisecond)
	}
	return nil
}

// The channels are classic, so that all hear one another wherever they have
// subscribed; who listens is counted at each node.
func TestInAClusterAllAreHeard(t *testing.T) {
	locktest.Long(t)
	t.Parallel()
	c := testserver.StartCluster(t, testserver.Kinds()[0])
	all := everybody(t, drivers.Cluster(c))
	missed := 0
	for range 10 { // who asks first knows as little of the nodes as a command that has just begun
		for _, adapter := range drivers.Adapters {
			all = append(all, locktest.ClientOf(t, adapter.Open(t, drivers.Cluster(c)), redlatch.Config{}))
			p, err := admin.New(all[len(all)-1]).Participants(t.Context(), admin.Question{})
			if err != nil || p.Silent != 0 || len(p.Clients) != len(all) {
				missed++
				t.Logf("%s, a client that has just begun, hears %d of %d, and of %d that they are silent: %v", adapter.Name, len(p.Clients), len(all), p.Silent, err)
			}
		}
	}
	if missed > 3 { // a machine that stands still for seconds is no fault of theirs
		t.Errorf("%d of %d clients that had just begun have not heard all others", missed, len(all)-len(drivers.Adapters))
	}
	h, err := all[0].Lock("orders").Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found := locktest.Within(locktest.Generous, func() bool { // a note comes a second or two after the first acquisition
		info, err := admin.New(all[1]).Info(t.Context(), "orders")
		return err == nil && len(info.Holders) == 1 && strings.HasPrefix(info.Holders[0].By, "goredis@")
	})
	if !found {
		t.Error("the holder is not known by its name")
	}
	if err := h.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// A user without a right learns at once which one that is, not after a time-out
// that looks like an outage.
func TestAUserThatMayNotUseAChannelIsTold(t *testing.T) {
	locktest.Long(t)
	t.Parallel()
	for _, kind := range testserver.Kinds() {
		for _, x := range []struct{ rights, names string }{
			{"&redlatch_ask", "channel redlatch_answer: "},
			{"&redlatch_answer", "channel redlatch_ask: "},
			{"&none", "channel redlatch_answer: "},
			{"&redlatch* -pubsub", ""},
		} {
			t.Run(string(kind)+"/"+x.rights, func(t *testing.T) {
				t.Parallel()
				args := append([]string{"--user", "default", "on", "nopass", "~*", "resetchannels", "+@all"}, strings.Fields(x.rights)...)
				s := testserver.Start(t, kind, args...)
				for _, adapter := range drivers.Adapters {
					c := locktest.ClientOf(t, adapter.Open(t, drivers.Single(s.Addr())), redlatch.Config{OutageTimeout: locktest.Generous}) // twenty servers begin at once
					p, err := admin.New(c).Participants(t.Context(), admin.Question{})
					switch {
					case p.Silent != -1:
						t.Errorf("%s: %d are silent, which nobody knows", adapter.Name, p.Silent)
					case x.names == "" && err != nil:
						t.Errorf("%s: %v", adapter.Name, err)
					case x.names != "" && (err == nil || redlatch.IsRetryable(err) || !strings.Contains(err.Error(), x.names)):
						t.Errorf("%s: got %v, want an error that names %q", adapter.Name, err, x.names)
					}
				}
			})
		}
	}
}
