// Package embedded is the Redis of the examples: the one of the environment
// variable REDIS_ADDR, or one inside the program, so that each of them runs on a
// machine that has nothing but Go.
package embedded

import (
	"fmt"
	"os"

	"github.com/alicebob/miniredis/v2"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/redlatchgoredis"
)

// Clients returns so many clients of the server, each as a process of a service
// has one, and what closes them. In a service of yours the call of Open is all
// that you write.
func Clients(n int) (clients []*redlatch.Client, stop func(), err error) {
	server := func() {}
	stop = func() {
		for _, client := range clients {
			_ = client.Close()
		}
		server()
	}
	addr := os.Getenv("REDIS_ADDR")
	if addr == "" {
		own := miniredis.NewMiniRedis()
		own.ClockTTL(true) // keys end by the clock, and not when a test says so
		if err := own.Start(); err != nil {
			return nil, nil, fmt.Errorf("starting the embedded server: %w", err)
		}
		addr, server = own.Addr(), own.Close
	}
	for range n {
		client, err := redlatchgoredis.Open("redis://"+addr, redlatch.Config{})
		if err != nil {
			stop()
			return nil, nil, err
		}
		clients = append(clients, client)
	}
	return clients, stop, nil
}
