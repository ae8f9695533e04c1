package script

import (
	"strings"
	"testing"

	"github.com/redlatch/redlatch/driver"
)

func TestScriptsTellByThatKindOfPubSub(t *testing.T) {
	s, err := New("lock.release", "-- Releases.\n-- KEYS lock\n-- ARGV channel\n-- returns 1\n"+
		"if redis.call('PUBSUB', 'NUMSUB', ARGV[1])[2] > 0 then redis.call('PUBLISH', ARGV[1], '0') end\nreturn 1\n")
	if err != nil {
		t.Fatal(err)
	}
	for m, want := range map[Messages]string{
		Classic: "if redis.call('PUBSUB', 'NUMSUB', ARGV[1])[2] > 0 then redis.call('PUBLISH', ARGV[1], '0') end",
		Sharded: "if redis.call('PUBSUB', 'SHARDNUMSUB', ARGV[1])[2] > 0 then redis.call('SPUBLISH', ARGV[1], '0') end",
		Both:    "if numsub(ARGV[1])[2] > 0 then publish(ARGV[1], '0') end",
	} {
		v := s.By(m)
		if !strings.Contains(v.Source(), want) || v.SHA() != driver.NewScript("", v.Source()).SHA() || v.Name() != s.Name() {
			t.Errorf("%d: %s", m, v.Source())
		}
		for again := range kinds {
			if v.By(again) != s.By(again) {
				t.Errorf("%d by %d is another script", m, again)
			}
		}
	}
	if both := s.By(Both).Source(); !strings.HasPrefix(both, "-- Publishes both ways") || strings.Count(both, "'PUBLISH'") != 1 {
		t.Error(both)
	}
}

func TestScriptsThatTellNobodyOrAnywhereStayAsTheyAre(t *testing.T) {
	for name, source := range map[string]string{
		"no messages": "-- Reads.\n-- KEYS lock\n-- returns 1\nreturn 1\n",
		"no keys":     "-- Tells.\n-- ARGV channel\n-- returns 1\nreturn redis.call('PUBLISH', ARGV[1], '0')\n",
	} {
		s, err := New(name, source)
		if err != nil {
			t.Fatal(err)
		}
		for m := range kinds {
			if s.By(m) != s {
				t.Errorf("%s: %d is another script", name, m)
			}
		}
	}
}
