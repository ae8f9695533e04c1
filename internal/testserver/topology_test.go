package testserver_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/testserver"
)

// eventually waits, in real time, for a state that must come.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never happened: %s", what)
		}
	}
}

func TestCluster(t *testing.T) {
	if testing.Short() {
		t.Skip("a long story, for make check")
	}
	each(t, func(t *testing.T, k testserver.Kind) {
		began := time.Now()
		c := testserver.StartCluster(t, k)
		t.Logf("ready after %v", time.Since(began))
		if len(c.Addrs()) != 6 {
			t.Fatalf("addresses %v", c.Addrs())
		}
		for key, want := range map[string]int{"b": 0, "c": 1, "foo": 2} { // slots 3300, 7365, 12182
			n := c.PrimaryOf(key)
			if n != c.Nodes[want] {
				t.Errorf("%s is served by %s, want node %d", key, n.Addr(), want)
			}
			n.MustDo("SET", key, "1")
		}
		if _, err := c.Nodes[0].Do("GET", "foo"); err == nil || !strings.HasPrefix(err.Error(), "MOVED ") {
			t.Errorf("GET on the wrong node: %v", err)
		}
		old := c.PrimaryOf("foo")
		if v := old.MustDo("WAIT", "1", "60000"); v != int64(1) {
			t.Fatalf("WAIT: %v", v)
		}
		c.DeadAfter(time.Second)
		old.Kill()
		now := c.PrimaryOf("foo")
		if now != c.Nodes[5] {
			t.Fatalf("%s took over, want the replica %s", now.Addr(), c.Nodes[5].Addr())
		}
		if v := now.MustDo("GET", "foo"); v != "1" {
			t.Fatalf("foo = %v after the failover", v)
		}
		old.Restart()
		eventually(t, "the old primary is a replica", func() bool {
			v, _ := old.Do("INFO", "replication")
			info, _ := v.(string)
			return strings.Contains(info, "role:slave")
		})
	})
}

func TestSentinels(t *testing.T) {
	if testing.Short() {
		t.Skip("a long story, for make check")
	}
	each(t, func(t *testing.T, k testserver.Kind) {
		began := time.Now()
		sentinels := testserver.StartSentinels(t, k)
		t.Logf("ready after %v", time.Since(began))
		old, err := sentinels.Primary()
		if err != nil || old != sentinels.Data[0] || len(sentinels.Addrs()) != 3 {
			t.Fatalf("primary %v, %v; sentinels %v", old, err, sentinels.Addrs())
		}
		old.MustDo("SET", "x", "1")
		if v := old.MustDo("WAIT", "2", "60000"); v != int64(2) {
			t.Fatalf("WAIT: %v", v)
		}
		sentinels.DeadAfter(time.Second / 2)
		old.Kill()
		var now *testserver.Server
		eventually(t, "failover", func() bool {
			now, err = sentinels.Primary()
			return err == nil && now != old
		})
		sentinels.DeadAfter(time.Minute) // or the old primary may be chosen again
		// Sentinel disconnects the clients of a server whose role it changes, so
		// that any single command may fail.
		eventually(t, "the new primary has x", func() bool {
			v, err := now.Do("GET", "x")
			return err == nil && v == "1"
		})
		old.Restart()
		eventually(t, "the old primary is a replica", func() bool {
			v, _ := old.Do("INFO", "replication")
			info, _ := v.(string)
			return strings.Contains(info, "role:slave")
		})
	})
}
