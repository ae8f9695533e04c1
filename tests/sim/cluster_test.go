package sim

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/wire"
)

// An endpoint that took keys of several slots would be one server. One that a
// client does not believe shows a fault of that client's.
func TestAnEndpointRefusesKeysOfSeveralSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := []*node{newNode(), newNode()}
		nodes[1].site = 1
		h := &history{start: time.Now()}
		newCluster(nodes, t.Errorf)
		var links []*link
		for _, s := range nodes {
			links = append(links, newLink(newChance(1, 1), s, weather{}, h))
		}
		l, script := &endpointLink{clusterLink: newClusterLink(links)}, driver.NewScript("test.set", "return #KEYS")
		ask := func(keys []string, code string) {
			t.Helper()
			_, err := l.Run(bg, script, keys, nil)
			var re *driver.RunError
			if errors.As(err, &re); code == "" && err != nil || code != "" && (re == nil || re.Code != code) {
				t.Errorf("%q: %v, want %q", keys, err, code)
			}
		}
		ask([]string{"a"}, "")
		ask([]string{"b", "{b}c"}, "")
		ask([]string{"a", "b"}, crossSlot)
		ask([]string{"a", "b"}, crossSlot) // it may have been on its way
		refuses(t, h, "")
		time.Sleep(patience + time.Millisecond)
		ask([]string{"a", "b"}, crossSlot)
		refuses(t, h, "knows that these count")
		for _, s := range nodes {
			s.mini.Close()
		}
	})
}

// A node that would execute a script whose keys are elsewhere would give a lock
// twice, and that would not be the library's fault.
func TestANodeExecutesWhatItHasTheKeysOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := []*node{newNode(), newNode()}
		nodes[1].site = 1
		c := newCluster(nodes, t.Errorf)
		one, both := []string{"a"}, []string{"a", "b{a}"}
		slot := wire.Slot("a")
		from, to := nodes[first(slot, 2)], nodes[1-first(slot, 2)]
		script := driver.NewScript("test.set", "for _, key in ipairs(KEYS) do redis.call('SET', key, '1', 'PX', 5000) end")
		ask := func(s *node, keys []string, asking bool, want string) {
			t.Helper()
			_, _, err := s.exec(script, keys, nil, asking)
			var re *driver.RunError
			if errors.As(err, &re); want == "" && err != nil || want != "" && (re == nil || re.Code != want || re.Outcome != driver.NotExecuted) {
				t.Errorf("%q at node %d: %v, want %q", keys, s.site, err, want)
			}
		}
		ask(from, one, false, "")
		ask(to, one, false, "MOVED")
		c.set(func() { c.moving, c.to = slot, to.site })
		ask(from, one, false, "")
		ask(from, both, false, "TRYAGAIN")
		if !c.moveOne(slot, from, to) {
			t.Error("no key has moved")
		}
		ask(from, one, false, "ASK")
		ask(to, one, false, "MOVED")
		ask(to, both, true, "TRYAGAIN")
		ask(to, one, true, "")
		if c.moveOne(slot, from, to) {
			t.Error("more keys have moved")
		}
		ask(from, one, false, "MOVED")
		ask(to, both, false, "")
		if ttl := to.mini.TTL("a"); ttl != 5*time.Second {
			t.Errorf("the key ends in %v", ttl)
		}
		for _, s := range nodes {
			s.mini.Close()
		}
	})
}
