package campaign

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/rueidis"
	"github.com/valkey-io/valkey-go"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/leaktest"
	"github.com/redlatch/redlatch/redlatchgoredis"
	"github.com/redlatch/redlatch/redlatchrueidis"
	"github.com/redlatch/redlatch/redlatchvalkey"
	"github.com/redlatch/redlatch/tests/internal/drivers"
	"github.com/redlatch/redlatch/tests/sim"
)

// roleEnv is the variable with the role of a child, as JSON. A program of this
// test that has it is a process of the fleet.
const roleEnv = "REDLATCH_CAMPAIGN_ROLE"

const (
	watchdog = 2 * time.Second
	patience = 300 * time.Millisecond // of a driver
	workers  = 3                      // of a process
)

// A role is what a process is.
type role struct {
	Type    string
	Process int
	Seed    uint64

	Addrs   []string          // of the server, the sentinels, or nodes of the cluster
	Master  string            // if these are sentinels: what they call the primary
	Cluster bool              // they are nodes of one
	Ways    map[string]string // to all servers: the address to connect to, by what others call a server
}

func TestMain(m *testing.M) {
	if text := os.Getenv(roleEnv); text != "" {
		var r role
		err := json.Unmarshal([]byte(text), &r)
		if err == nil {
			err = r.play()
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "process %d: %v\n", r.Process, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	leaktest.Main(m, drivers.Lingering...)
}

// now reads the monotonic clock, which all processes of a machine share.
func now() time.Duration {
	var ts syscall.Timespec
	const monotonic = 1
	if _, _, err := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, monotonic, uintptr(unsafe.Pointer(&ts)), 0); err != 0 {
		panic(err)
	}
	return time.Duration(ts.Nano())
}

// dial connects by the process's own way to a server.
func (r role) dial(ctx context.Context, addr string) (net.Conn, error) {
	way, ok := r.Ways[addr]
	if !ok {
		return nil, fmt.Errorf("no way leads to %q", addr)
	}
	return (&net.Dialer{Timeout: patience}).DialContext(ctx, "tcp", way)
}

// adapters are what processes use, each of three in turn another one.
var adapters = [...]string{"go-redis", "rueidis", "valkey-go"}

func adapterOf(process int) string { return adapters[process%len(adapters)] }

// open returns the driver of a process.
func (r role) open() (driver.Redis, error) {
	single := !r.Cluster && r.Master == ""
	switch adapterOf(r.Process) {
	case "go-redis":
		redis.SetLogger(&logging.VoidLogger{}) // it would tell of each fault
		return redlatchgoredis.Use(redis.NewUniversalClient(&redis.UniversalOptions{
			Addrs: r.Addrs, MasterName: r.Master, IsClusterMode: r.Cluster, DialTimeout: patience, ReadTimeout: patience, WriteTimeout: patience,
			Dialer: func(ctx context.Context, _, addr string) (net.Conn, error) { return r.dial(ctx, addr) },
		})), nil
	case "rueidis":
		return redlatchrueidis.New(rueidis.ClientOption{
			InitAddress: r.Addrs, Sentinel: rueidis.SentinelOption{MasterSet: r.Master}, ForceSingleClient: single, ConnWriteTimeout: patience,
			DialCtxFn: func(ctx context.Context, addr string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
				return r.dial(ctx, addr)
			},
		})
	default:
		return redlatchvalkey.New(valkey.ClientOption{
			InitAddress: r.Addrs, Sentinel: valkey.SentinelOption{MasterSet: r.Master}, ForceSingleClient: single, ConnWriteTimeout: patience,
			DialCtxFn: func(ctx context.Context, addr string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
				return r.dial(ctx, addr)
			},
		})
	}
}

// play works until the input ends, and writes what it trusts.
func (r role) play() error {
	var d driver.Redis
	for { // the way may be cut, or the server be down
		var err error
		if d, err = r.open(); err == nil {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	client, err := redlatch.New(d, redlatch.Config{WatchdogTimeout: watchdog, OutageTimeout: 20 * time.Second, CloseTimeout: 20 * time.Second})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() {
		_, _ = bufio.NewReader(os.Stdin).ReadByte() // nothing comes; it ends
		stop()
	}()
	var mu sync.Mutex
	out := json.NewEncoder(os.Stdout)
	write := func(l sim.Line) {
		mu.Lock()
		defer mu.Unlock()
		if err := out.Encode(l); err != nil {
			panic(err)
		}
	}
	var busy sync.WaitGroup
	for n := range workers {
		w := sim.Worker{Client: client, Type: r.Type, Process: r.Process, Number: n, Watchdog: watchdog, Now: now, Write: write}
		busy.Go(func() {
			if err := w.Work(ctx, r.Seed); err != nil {
				write(sim.Line{Process: r.Process, Err: err.Error()}) // at once: the process may be killed
			}
		})
	}
	busy.Wait()
	return client.Close()
}
