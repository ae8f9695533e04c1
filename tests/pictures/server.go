package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch/internal/heldport"
)

// startServer starts a redis-server that stores nothing, from where make servers
// puts it or from PATH, and returns when it answers.
func startServer(ctx context.Context, root, dir string) (addr string, stop func(), err error) {
	folder := os.Getenv("REDLATCH_SERVERS")
	if folder == "" {
		folder = filepath.Join(root, ".servers", "bin")
	}
	binary, err := exec.LookPath(filepath.Join(folder, "redis-server"))
	if err != nil {
		if binary, err = exec.LookPath("redis-server"); err != nil {
			return "", nil, fmt.Errorf("%w: make servers installs it", err)
		}
	}
	port, letGo, err := heldport.Take()
	if err != nil {
		return "", nil, err
	}
	addr = heldport.Addr(port)
	cmd := exec.CommandContext(ctx, binary, "--port", port, "--bind", "127.0.0.1", "--dir", dir, "--save", "", "--appendonly", "no")
	if err := cmd.Start(); err != nil {
		letGo()
		return "", nil, err
	}
	stop = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		letGo()
	}
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	defer rdb.Close()
	for {
		err := rdb.Ping(ctx).Err()
		if err == nil {
			return addr, stop, nil
		}
		select {
		case <-ctx.Done():
			stop()
			return "", nil, fmt.Errorf("redis-server does not answer: %w", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
