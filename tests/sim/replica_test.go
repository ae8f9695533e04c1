package sim

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch/driver"
)

// A replica that has more than it has acknowledged, or less, would prove nothing,
// or accuse the library.
func TestAReplicaHasWhatItHasAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newNode()
		s.replica = &replica{lag: 20 * time.Millisecond}
		s.set(s.copyLocked)
		set := func(key string) time.Time {
			t.Helper()
			if _, _, err := s.exec(driver.NewScript("test.set", "redis.call('SET', KEYS[1], '1')"), []string{key}, nil, false); err != nil {
				t.Fatal(err)
			}
			return time.Now()
		}
		a := set("a")
		time.Sleep(19 * time.Millisecond)
		if s.acknowledged(a) {
			t.Error("it is acknowledged at once")
		}
		time.Sleep(time.Millisecond)
		if !s.acknowledged(a) {
			t.Error("it is not acknowledged")
		}
		s.set(func() { s.replica.stopLocked(time.Now().Add(time.Second)) })
		b := set("b")
		time.Sleep(900 * time.Millisecond)
		if s.acknowledged(b) {
			t.Error("a replica that stands still acknowledges something")
		}
		if keys := s.promote().keys; len(keys) != 1 || keys[0].name != "a" {
			t.Errorf("the replica has %+v", keys)
		}
		time.Sleep(time.Second)
		if s.acknowledged(b) {
			t.Error("what has taken over acknowledges something")
		}
		s.mini.Close()
	})
}

// What wrote nothing is acknowledged by a replica that lacks what others wrote, as
// WAIT of Redis 8 and of Valkey does.
func TestWhatWroteNothingIsAcknowledgedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newNode()
		s.replica = &replica{}
		s.set(s.copyLocked)
		s.set(func() { s.replica.stopLocked(time.Now().Add(time.Minute)) })
		way := ackedLink{newLink(newChance(1, 1), s, weather{}, &history{start: time.Now()})}
		for _, test := range []struct {
			name, script string
			want         int
		}{
			{"it writes", "return redis.call('SET', KEYS[1], '1')", 0},
			{"it writes the same value with a TTL", "return redis.call('SET', KEYS[1], '1', 'PX', '60000')", 0},
			{"it only reads", "return redis.call('GET', KEYS[1])", 1},
			{"it deletes what is not there", "return redis.call('DEL', KEYS[1] .. ':other')", 1},
			{"it raises a TTL", "return redis.call('PEXPIRE', KEYS[1], '70000')", 0},
		} {
			if _, acked, err := way.RunAcked(bg, driver.NewScript("test", test.script), []string{"a"}, nil, 1, time.Second); err != nil || acked != test.want {
				t.Errorf("%s: %d replicas have it, %v; want %d", test.name, acked, err, test.want)
			}
		}
		s.mini.Close()
	})
}
