package redlatchgoredis

import (
	"errors"
	"reflect"

	"github.com/redis/go-redis/v9"
)

// leave has go-redis close the connections that are idle. Those that are in use
// are closed by whoever is told over them, too, that the server is no primary.
func (d *Driver) leave() (left bool) {
	d.leaving.Lock()
	defer d.leaving.Unlock()
	ctx := d.limits.Get()
	idle := reflect.ValueOf(d.single.PoolStats())
	for range count(idle) {
		_ = d.single.Process(ctx, once{redis.NewCmd(ctx, "ping", unsendable{})})
	}
	for range count(idle.Elem().FieldByName("PipelineStats")) { // of pipelines, which newer versions of go-redis have
		pipe := d.single.Pipeline()
		_ = pipe.Process(ctx, once{redis.NewCmd(ctx, "ping", unsendable{})})
		_, _ = pipe.Exec(ctx)
	}
	return true
}

// count returns how many connections of a pool are idle. Without such a pool there
// are none.
func count(stats reflect.Value) uint64 {
	if !stats.IsValid() || stats.IsNil() {
		return 0
	}
	return stats.Elem().FieldByName("IdleConns").Uint()
}

// unsendable is an argument over which go-redis gives up a connection.
type unsendable struct{}

var errLeave = errors.New("redlatchgoredis: the server is no primary any longer: its connections are closed")

// MarshalBinary implements encoding.BinaryMarshaler.
func (unsendable) MarshalBinary() ([]byte, error) { return nil, errLeave }

// follow has all channels subscribed anew.
func (d *Driver) follow() {
	for _, h := range []*hub{d.classic, d.sharded} {
		h.mu.Lock()
		for _, l := range h.links {
			h.broken = h.broken || l.heard
			h.drop(l)
		}
		h.mu.Unlock()
	}
}
