package main

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/redlatch/redlatch/internal/overview"
	"github.com/redlatch/redlatch/internal/testserver"
)

// noTTLs makes every TTL that ends 1: it goes down while it is read. What clients
// say is left out, too.
func noTTLs(found []overview.Lock) []overview.Lock {
	for i := range found {
		found[i].Exists, found[i].Who = false, overview.Who{}
		if found[i].TTL > 0 {
			found[i].TTL = 1
		}
		for n := range found[i].Holders {
			if h := &found[i].Holders[n]; h.TTL > 0 {
				h.TTL = 1
			}
		}
	}
	return found
}

// putSynchronizers makes one of each, as Redisson does, and a barrier, with the
// commands of redis-cli.
func putSynchronizers(do func(args ...string)) (until int64) {
	ms := func(d time.Duration) string { return strconv.FormatInt(time.Now().Add(d).UnixMilli(), 10) }
	until = time.Now().Add(time.Hour).UnixMilli()
	do("SET", "ports", "4")
	do("SET", "jobs", "4", "PX", "3600000")
	do("SET", "encoder", "1")
	do("ZADD", "{encoder}:timeout", ms(time.Hour), strings.Repeat("\x9a", 16), ms(-time.Hour), strings.Repeat("\x01", 16), "922337203685477", strings.Repeat("\xff", 16))
	do("HSET", "api", "rate", "100", "interval", "60000", "type", "0", "keepAliveTime", "7200000")
	do("PEXPIRE", "api", "7200000")
	do("SET", "{api}:value", "98")
	do("ZADD", "{api}:permits", ms(0), "\x10"+strings.Repeat("r", 16)+"\x02\x00\x00\x00")
	do("HSET", "each", "rate", "5", "interval", "1500", "type", "1")
	client := strings.TrimSuffix(holder, ":1")
	do("HSET", "redlatch_barrier:{gate}", "generation", client+":9:2", "parties", "3")
	do("PEXPIRE", "redlatch_barrier:{gate}", "600000")
	do("HSET", "redlatch_barrier:{gate}:"+client+":9:2", "arrived", "2", client+":8", "1", client+":7", "2")
	do("ZADD", "redlatch_barrier_alive:{gate}", strconv.FormatInt(until, 10), client)
	return until
}

func TestListAndShowSynchronizers(t *testing.T) {
	t.Parallel()
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		r := newRedis(t)
		c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{r.Addr()}, Password: password, DisableCache: true, AlwaysRESP2: true})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		r.testSynchronizers(t, func(args ...string) {
			if err := c.Do(t.Context(), c.B().Arbitrary(args...).Build()).Error(); err != nil {
				t.Fatalf("%q: %v", args, err)
			}
		})
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		s := testserver.Start(t, testserver.Redis)
		r := &redis{url: "redis://" + s.Addr()}
		r.testSynchronizers(t, func(args ...string) { s.MustDo(args...) })
	})
}

func (r *redis) testSynchronizers(t *testing.T, do func(args ...string)) {
	until := putSynchronizers(do)
	do("SET", "text", "five")
	do("HSET", "settings", "rate", "high", "interval", "low", "type", "x")
	do("RPUSH", "list", "5")

	number := func(n int) *int { return &n }
	none, nobody := []overview.Holder{}, []overview.Waiter{}
	client := strings.TrimSuffix(holder, ":1")
	want := []overview.Lock{
		{
			Name: "api", Kind: "rate limiter", TTL: 1, Holders: none, Queue: nobody, Count: number(98), Total: number(100),
			Rate: &overview.Rate{Permits: 100, Interval: 60_000, KeepAlive: 7_200_000},
		},
		{
			Name: "each", Kind: "rate limiter", TTL: -1, Holders: none, Queue: nobody, Total: number(5),
			Rate: &overview.Rate{Permits: 5, Interval: 1500, PerClient: true},
		},
		{
			Name: "encoder", Kind: "expirable semaphore", Held: true, TTL: -1, Queue: nobody, Count: number(2), Total: number(4),
			Holders: []overview.Holder{{Owner: strings.Repeat("9a", 16), Count: 1, TTL: 1}, {Owner: strings.Repeat("ff", 16), Count: 1, TTL: -1}},
		},
		{
			Name: "gate", Kind: "barrier", TTL: 1, Holders: none, Count: number(2), Total: number(3), Generation: client + ":9:2",
			Queue: []overview.Waiter{{Owner: client + ":7", Client: client, Until: until}, {Owner: client + ":8", Client: client, Until: until}},
		},
	}
	counters := []overview.Lock{
		{Name: "jobs", Kind: "semaphore", TTL: 1, Holders: none, Queue: nobody, Count: number(4)},
		{Name: "ports", Kind: "semaphore or latch", TTL: -1, Holders: none, Queue: nobody, Count: number(4)},
	}
	if got := noTTLs(document[[]overview.Lock](t, r.asked(t, "ls", "-o", "json"))); !reflect.DeepEqual(got, want) {
		t.Errorf("ls\n got %+v\nwant %+v", got, want)
	}
	all := slices.Concat(want, counters)
	if got := noTTLs(document[[]overview.Lock](t, r.asked(t, "ls", "-a", "*", "-o", "json"))); !reflect.DeepEqual(got, all) {
		t.Errorf("ls -a\n got %+v\nwant %+v", got, all)
	}
	for _, one := range all {
		got := noTTLs([]overview.Lock{document[overview.Lock](t, r.asked(t, "show", one.Name, "-o", "json"))})
		if !reflect.DeepEqual(got[0], one) {
			t.Errorf("show\n got %+v\nwant %+v", got[0], one)
		}
	}

	res := r.run(t, "ls", "--all")
	contains(t, res.out,
		"rate limiter, 98 of 100 free ", "rate limiter, 5 for each client ", "expirable semaphore, 2 of 4 free ", "barrier, 2 of 3 here ",
		"semaphore, 4 free ", "semaphore or latch, 4 ")
	if lines := strings.Count(res.out, "\n"); lines != 7 || strings.Contains(res.out, "text") {
		t.Errorf("%+v", res)
	}
	for name, parts := range map[string][]string{
		"api":     {"kind        rate limiter\n", "ttl         1h59m", "rate        100 in 1m0s\n", "mode        all clients together\n", "available   98\n", "keep-alive  2h0m0s\n"},
		"each":    {"rate        5 in 1.5s\n", "mode        each client for itself\n", "keep-alive  none\n"},
		"encoder": {"available  2\n", "total      4\n", "taken      2\n", "permit 1   " + strings.Repeat("9a", 16) + "\nttl        59m", "permit 2   " + strings.Repeat("ff", 16) + "\nttl        none\n"},
		"gate":    {"generation  " + client + ":9:2\n", "parties     3\n", "arrived     2\n", "waiter 1    redisson\nowner       " + client + ":7\n", "waiter 2    redisson\nowner       " + client + ":8\n", "until       20"},
		"jobs":    {"kind       semaphore\n", "available  4\n", "total      not stored\n"},
		"ports":   {"kind   semaphore or latch\n", "ttl    none\n", "count  4\n"},
	} {
		contains(t, r.run(t, "show", name).out, parts...)
	}

	// What is no lock is not released, nor taken for one.
	for name, kind := range map[string]string{"encoder": "expirable semaphore", "api": "rate limiter", "ports": "semaphore or latch", "gate": "barrier"} {
		if res := r.run(t, "release", "--force", name); res.code != exitData || !strings.Contains(res.err, "its kind is "+kind) {
			t.Errorf("%s: %+v", name, res)
		}
	}
	for _, name := range []string{"text", "settings", "list"} {
		if res := r.run(t, "show", name); res.code != exitData || res.out != "" || !strings.Contains(res.err, "not a lock") {
			t.Errorf("%s: %+v", name, res)
		}
	}
	if res := r.run(t, "run", "ports", "--try", "--", "true"); res.code != exitData || !strings.Contains(res.err, "not a lock") {
		t.Errorf("run: %+v", res)
	}
}
