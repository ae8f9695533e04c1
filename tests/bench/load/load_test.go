package main

import (
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/testserver"
)

// However busy the machine is: what comes first, an operation or the end of a
// length that is too short for one, makes no difference to the next try.
func TestLoadsCost(t *testing.T) {
	for _, l := range loads {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			addr := testserver.Start(t, testserver.Redis).Addr()
			for length := 50 * time.Millisecond; length < time.Minute; length *= 2 {
				c, err := l.measure(addr, 10*time.Millisecond, length)
				if err != nil {
					t.Fatal(err)
				}
				if c.Elapsed < length {
					t.Fatalf("%+v in less than %v", c, length)
				}
				if c.Operations > 0 && c.CPU > 0 {
					return
				}
			}
			t.Error("cost nothing")
		})
	}
}

func TestALoadThatFails(t *testing.T) {
	server := testserver.Start(t, testserver.Redis)
	if _, err := server.Do("SET", "load", "another's"); err != nil {
		t.Fatal(err)
	}
	for _, l := range loads {
		if l.name == "contended-16" {
			if c, err := l.measure(server.Addr(), 0, time.Minute); err == nil {
				t.Errorf("%+v in spite of a wrong type", c)
			}
			return
		}
	}
	t.Error("no such load")
}
