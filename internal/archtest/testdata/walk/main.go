// Command walk acquires a free lock once, on a driver that answers from memory,
// and writes what the compiler's counters (go build -cover) saw of it into two
// folders: up to the driver's Run, and of the whole. It does so first with a
// context that never ends and a driver that is quick to give up, and then as when
// a node is slow: with a context that can end, and a driver that a caller cannot
// leave.
package main

import (
	"context"
	"os"
	"runtime/coverage"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
)

func main() {
	walk(context.Background(), time.Second, os.Args[1], os.Args[2])
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	walk(ctx, 5*time.Second, os.Args[3], os.Args[4])
}

func walk(ctx context.Context, timeout time.Duration, down, whole string) {
	redis := &memory{timeout: timeout}
	c, err := redlatch.New(redis, redlatch.Config{})
	must(err)
	l := c.Lock("orders")
	for range 3 { // what is made once, or used again, is made
		h, err := l.Acquire(ctx)
		must(err)
		must(h.Release(ctx))
	}
	for again := true; again; {
		must(clearDir(down))
		must(clearDir(whole))
		start := time.Now()
		redis.reached = func() { write(down) }
		must(coverage.ClearCounters())
		h, err := l.Acquire(ctx)
		time.Sleep(time.Second / 20) // the worker that asked lies down meanwhile
		write(whole)
		again = time.Since(start) > time.Second/4 // soon the clock looks at the leases, which is no part of the walk
		must(err)
		must(h.Release(ctx))
	}
	if redis.reached != nil {
		panic("Acquire has asked nobody")
	}
}

// clearDir makes a folder that is empty.
func clearDir(dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return os.Mkdir(dir, 0o700)
}

// memory is a driver that says yes.
type memory struct {
	driver.Redis
	timeout time.Duration
	reached func() // called once, by Run
}

func (m *memory) Run(context.Context, *driver.Script, []string, []string) (driver.Reply, error) {
	if f := m.reached; f != nil {
		m.reached = nil
		f()
	}
	return driver.Reply{Kind: driver.ReplyInt, Int: 1}, nil
}

func (*memory) Subscribe(string, bool, func(driver.Notice)) func() { return func() {} }
func (*memory) OnBreak(func(string)) func()                        { return func() {} }
func (*memory) Node(string) string                                 { return "" }

func (m *memory) Traits() driver.Traits {
	return driver.Traits{Name: "memory", Timeout: m.timeout}
}

func write(dir string) {
	must(coverage.WriteMetaDir(dir))
	must(coverage.WriteCountersDir(dir))
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
