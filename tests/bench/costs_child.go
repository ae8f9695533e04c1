package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// costChild is the whole of a process that measures what it has.
func costChild(text string) error {
	var j costJob
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		return err
	}
	if j.Timers {
		runtime.MemProfileRate = 1
	}
	go func() {
		for range readOrders(os.Stdin) { // the process ends with its input
		}
	}()
	c := &costMeter{costJob: j, server: server{addr: j.Addr, rdb: redis.NewClient(&redis.Options{Addr: j.Addr, PoolSize: 1})}, got: expense{Story: j.Story, Who: j.Who, N: j.N, Timed: !j.Timers}}
	measure := map[string]func() error{costOfHolds: c.holds, costOfReaders: c.readers, costOfWaiters: c.waiters, costOfLinks: c.links, costOfRenewals: c.renewals}[j.Story]
	if err := measure(); err != nil {
		return err
	}
	answer, err := json.Marshal(c.got)
	if err != nil {
		return err
	}
	fmt.Printf("result %s\n", answer)
	return nil
}

// A costMeter compares what the process and the server have before and after.
type costMeter struct {
	costJob

	server server
	got    expense
	was    possessions
}

// possessions are what the process has, and the bytes of the server.
type possessions struct {
	heap, stacks, goroutines, timers, server float64
}

// zombies is for how long the runtime may remember timers that were stopped: until
// most were due.
const zombies = 1500 * time.Millisecond

func (c *costMeter) possessions() (possessions, error) {
	if c.Timers {
		time.Sleep(zombies)
	}
	for range 3 { // what pools had goes with the second, and the profile is as of the last but one
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	p := possessions{heap: float64(m.HeapAlloc), stacks: float64(m.StackInuse), goroutines: float64(runtime.NumGoroutine())}
	if c.Timers {
		p.timers = float64(liveTimers())
	}
	info, err := c.server.rdb.InfoMap(context.Background(), "memory").Result()
	p.server = number(info["Memory"]["used_memory"])
	return p, err
}

// liveTimers counts the timers that the heap has: the heap profile says where each
// was made.
func liveTimers() (n int64) {
	records := make([]runtime.MemProfileRecord, 0)
	for {
		n, ok := runtime.MemProfile(records, false)
		if ok {
			records = records[:n]
			break
		}
		records = make([]runtime.MemProfileRecord, n+100)
	}
	for i := range records {
		if timerMade(records[i].Stack()) {
			n += records[i].InUseObjects()
		}
	}
	return n
}

// timerMade says whether what was allocated at stack is a timer, and not its
// channel.
func timerMade(stack []uintptr) bool {
	frames := runtime.CallersFrames(stack)
	for {
		frame, more := frames.Next()
		if !strings.HasPrefix(frame.Function, "runtime.") {
			return frame.Function == "time.newTimer" // which all of package time call
		}
		if !more {
			return false
		}
	}
}

// open opens a client of the keeper, which is afterwards what it will be:
// connected, for many requests at once.
func (c *costMeter) open() (keeping, error) {
	k, ok := keeperNamed(c.Who)
	if !ok {
		return nil, fmt.Errorf("no keeper %q", c.Who)
	}
	began := time.Now()
	client, err := k.open(c.costJob)
	if err != nil {
		return nil, err
	}
	c.got.Opened = micros(time.Since(began))
	began = time.Now()
	if err := pass(client, "first"); err != nil {
		return nil, err
	}
	c.got.First = micros(time.Since(began))
	return client, eachOf(1000, func(i int) error { return pass(client, fmt.Sprint("warm:", i)) })
}

// pass takes a lock and gives it back.
func pass(client keeping, name string) error {
	held, err := client.take(context.Background(), name)
	if err != nil {
		return err
	}
	return held.end()
}

func (c *costMeter) holds() error {
	client, err := c.open()
	if err != nil {
		return err
	}
	return c.keep(client, func(i int) (kept, error) { return client.take(context.Background(), fmt.Sprint("held:", i)) })
}

func (c *costMeter) readers() error {
	client, err := c.open()
	if err != nil {
		return err
	}
	reader := client.(interface {
		read(ctx context.Context, name string) (kept, error)
	})
	return c.keep(client, func(int) (kept, error) { return reader.read(context.Background(), "read") })
}

// keep measures what N holds cost that take has taken, from the first to the end
// of the last one.
func (c *costMeter) keep(client keeping, take func(i int) (kept, error)) (err error) {
	all := make([]kept, c.N)
	if c.was, err = c.possessions(); err != nil {
		return err
	}
	began := time.Now()
	if err := eachOf(c.N, func(i int) (err error) { all[i], err = take(i); return err }); err != nil {
		return err
	}
	c.got.Began = time.Since(began).Seconds()
	if err := c.compare(0); err != nil {
		return err
	}
	if !c.Timers && c.Story == costOfHolds && c.N != hugeCosts {
		keeper, _ := keeperNamed(c.Who)
		if err := c.window(keeper.window()); err != nil {
			return err
		}
	}
	for _, held := range all {
		if held.lost() {
			c.got.Lost++
		}
	}
	began = time.Now()
	var failed atomic.Int64
	closed := make(chan error, 1)
	ending := make(chan struct{})
	go func() {
		<-ending
		closed <- client.close()
	}()
	_ = eachOf(c.N, func(i int) error {
		if all[i].end() != nil {
			failed.Add(1)
		}
		return nil
	})
	close(ending)
	err = <-closed
	c.got.Ended = time.Since(began).Seconds()
	if n := int(failed.Load()); n > c.got.Lost {
		c.got.Lost = n
	}
	return err
}

// waitingWindow is long enough for redlatch to ask again for each lock that it
// waits for.
const waitingWindow = 3 * time.Second

// waiters has N callers wait for locks that somebody else has.
func (c *costMeter) waiters() error {
	holder, err := c.open()
	if err != nil {
		return err
	}
	names := c.N / waitersEach
	held := make([]kept, names)
	name := func(i int) string { return fmt.Sprint("wanted:", i) }
	if err := eachOf(names, func(i int) (err error) { held[i], err = holder.take(context.Background(), name(i)); return err }); err != nil {
		return err
	}
	client, err := c.open()
	if err != nil {
		return err
	}
	if c.was, err = c.possessions(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background()) // as that of a real caller
	defer cancel()
	began := time.Now()
	for i := range c.N {
		go func() {
			if got, err := client.take(ctx, name(i/waitersEach)); err == nil {
				_ = got.end()
			}
		}()
	}
	idle(ctx)
	c.got.Began = time.Since(began).Seconds()
	if err := c.compare(1); err != nil {
		return err
	}
	if !c.Timers {
		if err := c.window(waitingWindow); err != nil {
			return err
		}
	}
	for _, h := range held {
		if h.lost() {
			c.got.Lost++
		}
	}
	runtime.KeepAlive(held)
	return nil // the process ends, and with it all that is open; not every library lets its waiters go
}

// compare says what the process and the server have more than before, for each of
// N. Each has so many goroutines of its own.
func (c *costMeter) compare(own float64) error {
	is, err := c.possessions()
	if err != nil {
		return err
	}
	n := float64(c.N)
	c.got.Heap, c.got.Stacks = (is.heap-c.was.heap)/n, (is.stacks-c.was.stacks)/n
	c.got.Goroutines, c.got.Timers = (is.goroutines-c.was.goroutines)/n-own, (is.timers-c.was.timers)/n
	c.got.ServerBytes = (is.server - c.was.server) / n
	return nil
}

// window says what CPU time the process and the server take meanwhile.
func (c *costMeter) window(length time.Duration) error {
	before, err := c.server.counters()
	if err != nil {
		return err
	}
	spent, began := cpuOfSelf(), time.Now()
	time.Sleep(length)
	spent, took := cpuOfSelf()-spent, time.Since(began).Seconds()
	after, err := c.server.counters()
	if err != nil {
		return err
	}
	more, n := after.minus(before), float64(c.N)
	c.got.ClientCPU, c.got.ServerCPU = micros(spent)/n/took, 1e6*more.cpu/n/took
	c.got.Scripts = more.scripts / took
	return nil
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// eachOf calls f for 0 to n-1, for many at a time, and returns one of the errors.
func eachOf(n int, f func(i int) error) error {
	var wg sync.WaitGroup
	var next atomic.Int64
	errs := make(chan error, 128)
	for range cap(errs) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if err := f(i); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	return <-errs
}
