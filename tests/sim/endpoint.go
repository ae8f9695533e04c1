package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/wire"
)

// crossSlot is the code with which an endpoint refuses a request about keys of
// several slots.
const crossSlot = "CROSSSLOT"

// An endpointLink is a process's way to shards behind one endpoint, which its
// client takes for one server. The endpoint finds the shard.
type endpointLink struct {
	*clusterLink

	refused time.Time // when the first request was, and its client knew
}

// Run sends a request to the shard that has its keys, if it is one.
func (l *endpointLink) Run(ctx context.Context, x *driver.Script, keys, args []string) (driver.Reply, error) {
	for _, key := range keys {
		if wire.Slot(key) != wire.Slot(keys[0]) {
			return driver.Reply{}, l.refuse(x, keys)
		}
	}
	r, err := l.clusterLink.Run(ctx, x, keys, args)
	var re *driver.RunError
	if errors.As(err, &re) && (re.Code == "MOVED" || re.Code == "ASK") { // once more: no client hears of that
		err = notExecuted()
	}
	return r, err
}

// refuse refuses a request about keys of several slots. From the first time on a
// client sends them apart.
func (l *endpointLink) refuse(x *driver.Script, keys []string) error {
	way := l.links[0]
	way.history.trace("script %s %q: %s", x.Name(), keys, crossSlot)
	l.mu.Lock()
	known := !l.refused.IsZero() && time.Since(l.refused) > patience
	l.mu.Unlock()
	if known {
		way.history.fail("script %s has the keys %q, which are of several slots, and its client knows that these count", x.Name(), keys)
	}
	way.travel()
	way.travel()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refused.IsZero() {
		l.refused = time.Now()
	}
	return driver.ServerError(crossSlot+" Keys in request don't hash to the same slot", fmt.Errorf("%w: %q", errServer, keys))
}

// OnBreak registers f for all shards.
func (l *endpointLink) OnBreak(f func(node string)) (stop func()) {
	return l.clusterLink.OnBreak(func(string) { f("") })
}

// Node says that a client sees no shard.
func (*endpointLink) Node(string) string { return "" }

// Traits are those of a single server.
func (*endpointLink) Traits() driver.Traits { return driver.Traits{Name: "sim", Timeout: patience} }
