package interop

import (
	"testing"

	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/tests/internal/golden"
	"github.com/redlatch/redlatch/tests/interop/peer"
)

// TestGoldenEntries records what Redisson calls the locks and synchronizers of
// entries.
func TestGoldenEntries(t *testing.T) {
	needsServers(t)
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, cast{version: version, kind: peer.Plain}, testserver.Redis)
			got := golden.Entries{Redisson: version}
			for _, object := range []string{"accounts", "{tenant}:accounts", "a{b}c", "a b", "ü€😀"} {
				for _, key := range []string{"", "42", "{42}", "a b", "ü€😀", "a longer key than thirty-two bytes, so that it is two packets"} {
					names, err := w.javaClient().Thread("t1").EntryNames(w.ctx, object, key)
					if err != nil {
						t.Fatalf("%q of %q: %v", key, object, err)
					}
					got.Entries = append(got.Entries, golden.Entry{Object: object, Key: key, Names: names})
				}
			}
			compareGolden(t, "entries-"+version, got)
		})
	}
}
