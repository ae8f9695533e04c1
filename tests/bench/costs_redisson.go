package main

import (
	"context"
	"time"
)

// redissonRenewedEach is a third of its default watchdog time-out.
const redissonRenewedEach = 10 * time.Second

// redissonCost measures N holds of a JVM. Times are those of a JVM that has just
// begun.
func (b *bench) redissonCost(got *expense) error {
	r, err := startRedisson(b.root, job{Addr: b.server.addr})
	if err != nil {
		return err
	}
	defer r.kill()
	began := time.Now()
	if err := r.call(map[string]any{"op": "open", "url": "redis://" + b.server.addr}, got.patience()); err != nil {
		return err
	}
	got.Opened = micros(time.Since(began))
	// Connected, for many requests at once, as the others are.
	for _, warm := range []map[string]any{{"op": "hoard", "name": "warm", "n": 1000}, {"op": "drop"}} {
		if err := r.call(warm, got.patience()); err != nil {
			return err
		}
	}
	memory := func() (float64, error) {
		info, err := b.server.rdb.InfoMap(context.Background(), "memory").Result()
		return number(info["Memory"]["used_memory"]), err
	}
	was, err := memory()
	if err != nil {
		return err
	}
	held, err := r.ask(map[string]any{"op": "hoard", "name": "held", "n": got.N}, got.patience())
	if err != nil {
		return err
	}
	is, err := memory()
	if err != nil {
		return err
	}
	n := float64(got.N)
	got.Heap, got.Goroutines, got.ServerBytes = held.Heap/n, held.Threads/n, (is-was)/n
	got.Began = float64(held.MS) / 1000

	time.Sleep(redissonRenewedEach) // the first renewals compile what does them
	before, err := b.server.counters()
	if err != nil {
		return err
	}
	spent, began := cpuTime(r.cmd.Process.Pid), time.Now()
	time.Sleep(redissonRenewedEach)
	spent, took := cpuTime(r.cmd.Process.Pid)-spent, time.Since(began).Seconds()
	after, err := b.server.counters()
	if err != nil {
		return err
	}
	more := after.minus(before)
	got.ClientCPU, got.ServerCPU, got.Scripts = micros(spent)/n/took, 1e6*more.cpu/n/took, more.scripts/took

	began = time.Now()
	dropped, err := r.ask(map[string]any{"op": "drop"}, got.patience())
	if err != nil {
		return err
	}
	got.Lost = max(held.Failed, dropped.Failed)
	err = r.call(map[string]any{"op": "close"}, got.patience())
	got.Ended = time.Since(began).Seconds()
	return err
}
