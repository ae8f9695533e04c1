package drivertest

import (
	"context"
	"fmt"
	"slices"

	"github.com/redlatch/redlatch/driver"
)

func testScan(e *env) {
	var want []string
	for i := range 300 {
		key := fmt.Sprintf("%shash:%d", e.prefix, i)
		e.server.do("HSET", key, "f", "v")
		want = append(want, key)
	}
	e.server.do("HSET", e.prefix+"different", "f", "v")
	e.server.do("SET", e.prefix+"hash:string", "v")
	e.server.do("ZADD", e.prefix+"hash:zset", "1", "v")
	e.server.do("SADD", e.prefix+"hash:set", "v")
	primaries, err := e.r.Primaries(context.Background())
	if err != nil || len(primaries) != 1 {
		e.Fatalf("Primaries: %d, %v; want 1", len(primaries), err)
	}
	for _, kind := range []string{"string", "zset"} {
		if got := e.scan(primaries[0], kind, e.prefix+"hash:*"); !slices.Equal(slices.Compact(got), []string{e.prefix + "hash:" + kind}) {
			e.Errorf("Scan for a %s found %q", kind, got)
		}
	}
	got := e.scan(primaries[0], "hash", e.prefix+"hash:*")
	slices.Sort(got)
	got = slices.Compact(got) // SCAN may repeat a key
	slices.Sort(want)
	if !slices.Equal(got, want) {
		e.Errorf("Scan found %d keys, want the %d hashes of that name", len(got), len(want))
	}
}

// scan returns all keys of a type that a primary has, as SCAN gives them.
func (e *env) scan(p driver.Primary, kind, pattern string) (all []string) {
	e.Helper()
	var cursor uint64
	for range 10000 {
		keys, next, err := p.Scan(context.Background(), cursor, kind, pattern, 10)
		if err != nil {
			e.Fatal(err)
		}
		all = append(all, keys...)
		if cursor = next; cursor == 0 {
			return all
		}
	}
	e.Fatal("a scan does not come to an end")
	return nil
}

// A server that comes back empty knows no script and no subscription.
func testRestart(e *env) {
	if e.at.Restart == nil {
		return
	}
	counter, key := e.counter()
	channel := e.prefix + "channel"
	a, _ := e.listen(channel, false)
	a.confirmed(1)
	e.run(counter, []string{key}, nil)
	before, _ := a.heard()
	e.at.Restart()
	e.server = newClient(e.T, e.at.Dial, e.at.Admin)
	a.confirmed(before + 1)
	e.eventually("the script succeeds", func() bool {
		_, err := e.r.Run(context.Background(), counter, []string{key}, nil)
		return err == nil
	})
	if n := e.executed(key); n != "1" {
		e.Errorf("the script was executed %s times on the new server, want 1", n)
	}
	e.server.do("PUBLISH", channel, "back")
	a.hears("back")
}
