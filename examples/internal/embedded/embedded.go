// Package embedded is the Redis of the examples: the one of the environment variable REDIS_ADDR, or one inside the program,
// so that each of them runs on a machine that has nothing but Go.
package embedded

import (
	"fmt"
	"os"

	"github.com/alicebob/miniredis/v2"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/redlatchgoredis"
)

// A Redis is a server, and the clients that programs have made of it.
type Redis struct {
	addr string
	own  *miniredis.Miniredis
	ends []func()
}

// Start finds or starts the server.
func Start() (*Redis, error) {
	if addr := os.Getenv("REDIS_ADDR"); addr != "" {
		return &Redis{addr: addr}, nil
	}
	own := miniredis.NewMiniRedis()
	own.ClockTTL(true) // keys end by the clock, and not when a test says so
	if err := own.Start(); err != nil {
		return nil, fmt.Errorf("starting the embedded server: %w", err)
	}
	return &Redis{addr: own.Addr(), own: own}, nil
}

// Client returns a client as each process of a service has one. In a service of yours the call of Open is all that you write.
func (r *Redis) Client(cfg redlatch.Config) (*redlatch.Client, error) {
	client, err := redlatchgoredis.Open("redis://"+r.addr, cfg)
	if err != nil {
		return nil, err
	}
	r.ends = append(r.ends, func() { _ = client.Close() })
	return client, nil
}

// Clients returns so many of them.
func (r *Redis) Clients(n int) ([]*redlatch.Client, error) {
	all := make([]*redlatch.Client, n)
	for i := range all {
		var err error
		if all[i], err = r.Client(redlatch.Config{}); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Stop closes the clients, and the server if it is ours.
func (r *Redis) Stop() {
	for _, end := range r.ends {
		end()
	}
	if r.own != nil {
		r.own.Close()
	}
}
