package main

import (
	"errors"
	"fmt"
	"testing"

	"github.com/redlatch/redlatch/internal/testserver"
)

// The floor knows by heart what the scripts want, which changes.
func TestTheFloorKnowsTheScripts(t *testing.T) {
	t.Parallel()
	server := testserver.Start(t, testserver.Redis)
	if _, err := server.Do("ACL", "SETUSER", "default", "+script|load"); err != nil {
		t.Fatal(err)
	}
	for _, i := range []implementation{floorRueidis, floorGoredis} {
		for _, lock := range []lockType{plainLock, fairLock} {
			j := job{Name: fmt.Sprint(i.name, lock), Addr: server.Addr(), ScriptsDir: "../../internal/lua", Scenario: scenario{Goroutines: 1, Lock: lock}}
			l, err := i.open(j)
			if err != nil {
				t.Fatal(err)
			}
			defer l.close()
			for range 2 {
				if err := errors.Join(l.acquire(t.Context(), 0), l.release(t.Context(), 0)); err != nil {
					t.Errorf("%s, lock %q: %v", i.name, lock, err)
				}
			}
		}
	}
}
