package redlatchgoredis

import (
	"errors"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/connect"
)

// With rueidis the locks of that cluster would be in the other database.
func TestADatabaseOfAClusterIsRefused(t *testing.T) {
	if _, err := Open("redis+cluster://127.0.0.1:1/3", redlatch.Config{}); !errors.Is(err, errClusterDatabase) {
		t.Errorf("got %v", err)
	}
	rdb, err := NewClient(connect.Plan{Settings: connect.Settings{Mode: connect.Cluster, Addresses: []string{"127.0.0.1:1"}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := rdb.Close(); err != nil {
		t.Error(err)
	}
}

// What a file or a URL says of a server that is slow or far away is what it gets:
// it was 3 s, whatever they said.
func TestAScriptHasTheTimeThatSettingsSay(t *testing.T) {
	for _, want := range []time.Duration{300 * time.Millisecond, 3 * time.Second, 4 * time.Second, 10 * time.Second} {
		for _, s := range []connect.Settings{{}, {Mode: connect.Cluster}, {Mode: connect.Sentinel, MasterName: "m"}, {DialTimeout: 100 * time.Millisecond}} {
			s.Addresses, s.Timeout = []string{"127.0.0.1:1"}, want
			p, err := s.Plan(redlatch.Config{})
			if err != nil {
				t.Fatal(err)
			}
			rdb, err := NewClient(p)
			if err != nil {
				t.Fatal(err)
			}
			if got := Use(rdb).Traits().Timeout; got > want || s.DialTimeout == 0 && got != want {
				t.Errorf("%v: the driver has %v for a script", s, got)
			}
			if err := rdb.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
