package sim

import (
	"slices"
	"testing"
)

// A play on a cluster that is shown as one of a single server would claim what
// nobody has tried.
func TestATypeIsOnOneServerUnlessItNeedsMore(t *testing.T) {
	for _, typ := range Types() {
		if one := Topology(typ) == OneServer; one == slices.Contains(apart(), typ) {
			t.Errorf("%s is played on: %s", typ, Topology(typ))
		}
		plan := Plan{Type: typ}
		if many := sitesOf(plan) > 1; many != (sharded(typ) || Topology(typ) == Independent) {
			t.Errorf("%s has %d servers, on: %s", typ, sitesOf(plan), Topology(typ))
		}
	}
}
