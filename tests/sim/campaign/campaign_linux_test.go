package campaign

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/faultnet"
	"github.com/redlatch/redlatch/internal/randtest"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/tests/internal/locktest"
	"github.com/redlatch/redlatch/tests/sim"
)

// lengthEnv is the variable with how long all takes, if so many types are played side by side: make campaign says so to go test.
const (
	lengthEnv = "REDLATCH_CAMPAIGN_LENGTH"
	together  = 4
)

const fleet = 3 // processes at a time

// A process is a child, with its way to the server.
type process struct {
	number int
	cmd    *exec.Cmd
	in     io.Closer
	way    *faultnet.Proxy
	read   chan struct{} // closed when all that it wrote is read
	ended  chan struct{} // closed when it was waited for
	err    error         // how it ended
	killed bool
}

type campaign struct {
	*testing.T

	typ    string
	seed   uint64
	server *testserver.Server
	chance *rand.Rand
	ways   []*faultnet.Proxy
	addrs  []string
	living []*process
	born   int

	mu    sync.Mutex
	lines []sim.Line
}

// TestNoTwoProcessesTrustWhateverGoesWrong plays all types that are held, each on a kind of server that chance chooses.
func TestNoTwoProcessesTrustWhateverGoesWrong(t *testing.T) {
	locktest.Long(t)
	length := 30 * time.Second
	if text := os.Getenv(lengthEnv); text != "" {
		var err error
		if length, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	seed, err := randtest.Seed()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("what chance decided: %s=%d", randtest.SeedEnv, seed)
	types := sim.Held()
	length /= time.Duration((len(types) + together - 1) / together)
	for i, typ := range types {
		t.Run(typ, func(t *testing.T) {
			t.Parallel()
			kinds := testserver.EveryKind()
			c := &campaign{T: t, typ: typ, seed: seed, chance: rand.New(rand.NewPCG(seed, uint64(i)))} //nolint:gosec // it has to be the same each time
			c.server = testserver.Start(t, kinds[c.chance.IntN(len(kinds))], "--appendonly", "yes", "--appendfsync", "always")
			c.play(length)
		})
	}
}

// begin begins the processes of a fleet.
func (c *campaign) begin() {
	for range fleet {
		way := faultnet.New(c.server.Dial)
		c.Cleanup(way.Close)
		addr, err := way.Listen()
		if err != nil {
			c.Fatal(err)
		}
		c.ways, c.addrs = append(c.ways, way), append(c.addrs, addr)
	}
	c.Cleanup(func() { // also if not all of them can begin
		for _, p := range c.living {
			p.kill()
		}
	})
	for i := range fleet {
		c.living = append(c.living, c.spawn(i))
	}
}

// TestTheFleetsCheckerNoticesALoss has a server lose its data behind the back of the checker.
func TestTheFleetsCheckerNoticesALoss(t *testing.T) {
	locktest.Long(t)
	t.Parallel()
	c := &campaign{T: t, typ: "lock", seed: 1, server: testserver.Start(t, testserver.Redis)}
	c.begin()
	for end := time.Now().Add(locktest.Generous); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		c.server.MustDo("FLUSHALL")
		c.mu.Lock()
		wrong := sim.Judge(c.typ, c.lines)
		c.mu.Unlock()
		if len(wrong) > 0 {
			t.Log(wrong[0])
			return
		}
	}
	t.Error("nobody notices")
}

func (c *campaign) play(length time.Duration) {
	c.begin()
	struck := map[string]int{}
	for end := time.Now().Add(length); time.Now().Before(end); {
		time.Sleep(c.upTo(3 * time.Second))
		struck[c.strike()]++
	}
	for _, p := range c.living {
		if err := p.in.Close(); err != nil {
			c.Error(err)
		}
	}
	for _, p := range c.living {
		c.await(p)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	claims := map[[2]int]bool{}
	for _, l := range c.lines {
		claims[[2]int{l.Process, l.Number}] = true
	}
	c.Logf("%s: %d claims of %d processes, %v", c.server.Version(), len(claims), c.born, struck)
	if len(claims) < 20 {
		c.Error("so few show nothing")
	}
	for i, text := range sim.Judge(c.typ, c.lines) {
		if i < 10 {
			c.Error(text)
		}
	}
}

func (c *campaign) upTo(d time.Duration) time.Duration {
	f := c.chance.Float64()
	return time.Duration(f * f * float64(d))
}

// spawn begins a process, on one of the ways.
func (c *campaign) spawn(way int) *process {
	p := &process{number: fleet*c.born + way, way: c.ways[way], read: make(chan struct{}), ended: make(chan struct{})}
	c.born++
	text, err := json.Marshal(role{Type: c.typ, Addr: c.addrs[way], Process: p.number, Seed: c.seed})
	if err != nil {
		c.Fatal(err)
	}
	p.cmd = exec.Command(os.Args[0]) //nolint:gosec,noctx // this program; it is killed at the end
	p.cmd.Env = append(os.Environ(), roleEnv+"="+string(text))
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		c.Fatal(err)
	}
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		c.Fatal(err)
	}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // the system ends the child when this thread ends
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			<-p.read // as Wait closes what is read from
			p.err = p.cmd.Wait()
		}
		close(p.ended)
	}()
	if err := <-started; err != nil {
		c.Fatal(err)
	}
	go func() {
		defer close(p.read)
		for in := json.NewDecoder(out); ; {
			var l sim.Line
			if err := in.Decode(&l); err != nil {
				if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, os.ErrClosed) {
					c.Error(err)
				}
				return
			}
			if l.Err != "" {
				c.Errorf("process %d: %s", l.Process, l.Err)
				continue
			}
			c.mu.Lock()
			c.lines = append(c.lines, l)
			c.mu.Unlock()
		}
	}()
	return p
}

func (p *process) kill() {
	if p.killed {
		return
	}
	p.killed = true
	_ = p.cmd.Process.Kill() // fails only if it has ended
	<-p.ended
}

// await waits until a process has ended by itself: each worker gives up what it waits for, and has to get through what it does.
func (c *campaign) await(p *process) {
	select {
	case <-p.ended:
	case <-time.After(locktest.Generous):
		c.Errorf("process %d does not end", p.number)
		p.kill()
		return
	}
	p.killed = true
	if p.err != nil {
		c.Errorf("process %d: %v", p.number, p.err)
	}
}

// strike has one thing go wrong, and returns when it is over.
func (c *campaign) strike() (what string) {
	menu := []string{"kill", "stall", "cut", "requests cut", "replies cut", "break", "late", "restart", "server stalls"}
	what = menu[c.chance.IntN(len(menu))]
	i, d := c.chance.IntN(fleet), c.upTo(2*watchdog)
	p := c.living[i]
	signal := func(s os.Signal) {
		if err := p.cmd.Process.Signal(s); err != nil {
			c.Error(what, ": ", err)
		}
	}
	switch what {
	case "kill":
		p.kill()
		c.living[i] = c.spawn(i)
	case "stall":
		signal(syscall.SIGSTOP)
		time.Sleep(d)
		signal(syscall.SIGCONT)
	case "cut":
		p.way.Blackhole(true)
		time.Sleep(d)
		p.way.Blackhole(false)
		p.way.BreakAll()
	case "requests cut": // until they come, all late
		p.way.SetRule(func(faultnet.Request) faultnet.Action { return faultnet.Delay(d) })
		time.Sleep(d)
		p.way.SetRule(nil)
	case "replies cut":
		p.way.OneWay(true)
		time.Sleep(d)
		p.way.OneWay(false)
		p.way.BreakAll()
	case "break":
		p.way.BreakAll()
	case "late":
		own := rand.New(rand.NewPCG(c.seed, c.chance.Uint64())) //nolint:gosec // it has to be the same each time
		var mu sync.Mutex
		p.way.SetRule(func(faultnet.Request) faultnet.Action {
			mu.Lock()
			defer mu.Unlock()
			switch own.IntN(10) {
			case 0:
				return faultnet.Delay(time.Duration(own.Int64N(int64(watchdog))))
			case 1:
				return faultnet.DropReply
			case 2:
				return faultnet.StallReply
			}
			return faultnet.Pass
		})
		time.Sleep(d)
		p.way.SetRule(nil)
	case "restart":
		c.server.Restart()
	case "server stalls":
		c.server.Pause()
		time.Sleep(d)
		c.server.Resume()
	default:
		panic(fmt.Sprint("no fault ", what))
	}
	return what
}
