package main

import (
	"context"
	"time"

	goredislib "github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/latch"
	"github.com/redlatch/redlatch/redlatchgoredis"
	"github.com/redlatch/redlatch/redlatchrueidis"
)

var redlatchRueidis = implementation{
	name:     "redlatch on rueidis",
	settings: "redlatch with its zero Config (watchdog 30 s, trust window, contexts and local hand-off on), " + rueidisVersion() + " as its adapter sets it up",
	kind:     ours,
	locks:    allLocks,
	widths:   allWidths,
	open:     openOnRueidis,
}

func openOnRueidis(j job) (locker, error) {
	driver, err := redlatchrueidis.New(rueidisOptions(j))
	if err != nil {
		return nil, err
	}
	return openRedlatch(j, driver, func() { _ = driver.Close() })
}

var redlatchEndless = endless(redlatchRueidis)

var redlatchNamed = implementation{
	name:     "redlatch on rueidis, named anew",
	settings: "redlatch on rueidis, with client.Lock(name).Acquire(ctx) each time instead of one Lock for all times",
	kind:     ours,
	skips:    contendedIsSkipped,
	open: func(j job) (locker, error) {
		l, err := openOnRueidis(j)
		if err != nil {
			return nil, err
		}
		return &namedLocker{l.(*redlatchLocker), j.keys()}, nil // a plain lock's
	},
}

// A namedLocker makes its Locks when it needs them.
type namedLocker struct {
	*redlatchLocker
	keys []string
}

func (l *namedLocker) acquire(ctx context.Context, g int) (err error) {
	l.held[g].value, err = l.client.Lock(l.keys[g]).Acquire(ctx)
	return err
}

var redlatchGoredis = implementation{
	name:     "redlatch on go-redis",
	settings: "the same on " + goredisVersion() + " with its defaults",
	kind:     ours,
	locks:    allLocks,
	widths:   allWidths,
	open:     func(j job) (locker, error) { return openOnGoredis(j) },
}

func openOnGoredis(j job, opts ...redlatchgoredis.Option) (locker, error) {
	client := goredislib.NewClient(goredisOptions(j))
	return openRedlatch(j, redlatchgoredis.Use(client, opts...), func() { _ = client.Close() })
}

var redlatchGoredisEndless = endless(redlatchGoredis)

// redlatchShared has an option of the adapter, which matters where nobody has to
// wait.
var redlatchShared = func() implementation {
	i := redlatchGoredis
	i.name += ", shared pipelines"
	i.settings = "the same with redlatchgoredis.SharedPipelines"
	i.locks = nil
	i.skips = contendedIsSkipped
	i.open = func(j job) (locker, error) { return openOnGoredis(j, redlatchgoredis.SharedPipelines()) }
	return i
}()

// rueidisOptions and goredisOptions are shared with the floor, so these are the
// options that redlatch's adapter would set by itself.
func rueidisOptions(j job) rueidis.ClientOption {
	return rueidis.ClientOption{
		InitAddress: []string{j.Addr}, DisableCache: true, DisableRetry: true, PipelineMultiplex: -1,
		ConnWriteTimeout: 3 * time.Second,
	}
}

func goredisOptions(j job) *goredislib.Options {
	return &goredislib.Options{Addr: j.Addr}
}

func openRedlatch(j job, driver driver.Redis, stop func()) (locker, error) {
	var config redlatch.Config
	if j.Scenario.Replica {
		config.Acks, config.AckReplicas = redlatch.AckRequired, 1
	}
	client, err := redlatch.New(driver, config)
	if err != nil {
		stop()
		return nil, err
	}
	switch j.Scenario.Lock {
	case semaphoreType:
		return openSemaphore(j, client, stop)
	case countDown:
		return &redlatchLatch{opened{client, stop}, latch.New(client, j.Name)}, nil
	case plainLock, fairLock, readWrite, attendance:
	}
	l := &redlatchLocker{
		opened: opened{client, stop}, held: make([]padded[*redlatch.Hold], j.Scenario.Goroutines),
	}
	for _, key := range j.keys() {
		switch j.Scenario.Lock {
		case fairLock:
			l.locks = append(l.locks, client.FairLock(key))
		case readWrite:
			rw := client.ReadWriteLock(key)
			l.locks, l.readers = append(l.locks, rw.Write()), append(l.readers, rw.Read())
		default:
			l.locks = append(l.locks, client.Lock(key))
		}
	}
	return l, nil
}

type redlatchLocker struct {
	opened
	locks   []*redlatch.Lock
	readers []*redlatch.Lock // of a read-write lock
	held    []padded[*redlatch.Hold]
}

func (l *redlatchLocker) acquire(ctx context.Context, g int) (err error) {
	l.held[g].value, err = l.locks[g].Acquire(ctx)
	return err
}

func (l *redlatchLocker) acquireShared(ctx context.Context, g int) (err error) {
	l.held[g].value, err = l.readers[g].Acquire(ctx)
	return err
}

func (l *redlatchLocker) release(ctx context.Context, g int) error {
	return l.held[g].value.Release(ctx)
}

// An opened client, and what closes its driver.
type opened struct {
	client *redlatch.Client
	stop   func()
}

func (o opened) close() {
	_ = o.client.Close()
	o.stop()
}
