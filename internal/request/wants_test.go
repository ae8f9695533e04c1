package request

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/script"
)

// Whether a script may answer with a key that it wants is the script's own to say,
// by whatever kind of Pub/Sub it tells others.
func TestAKeyThatAScriptWantsIsSentWithIt(t *testing.T) {
	const body = "-- returns 1\nredis.call('PUBLISH', KEYS[1], KEYS[2])\nreturn 1\n"
	for header, wants := range map[string]bool{
		"-- Reads.\n-- KEYS lock proof...\n-- wants proof (of an owner that reads)\n": true,
		"-- Reads.\n-- KEYS lock proof...\n":                                          false,
	} {
		s, err := script.New("lock.read", header+body)
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range []script.Messages{script.Classic, script.Sharded, script.Both} {
			e := newEcho() // it answers with the argument
			sending(t, e, func(t *testing.T, c *Server) {
				call := Call{Server: c, Script: s.By(kind), Keys: []string{"lock"}, Args: []string{"proof"}, Lease: 3 * time.Second, Stop: c.Done}
				reply, err := call.Run(context.Background())
				want, sent := []string{"lock"}, 1
				if wants {
					want, sent = []string{"lock", "proof"}, 2
				}
				if err != nil || reply.Str != "proof" || !slices.Equal(call.Keys, want) || e.alone != sent {
					t.Errorf("of a script that wants a key: %v; by kind %d it was sent %d times, in the end with %q: %v, %v", wants, kind, e.alone, call.Keys, reply, err)
				}
			})
		}
	}
}
