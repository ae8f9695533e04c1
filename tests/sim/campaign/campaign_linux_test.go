package campaign

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/faultnet"
	"github.com/redlatch/redlatch/internal/randtest"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/tests/internal/locktest"
	"github.com/redlatch/redlatch/tests/interop/peer"
	"github.com/redlatch/redlatch/tests/sim"
	"github.com/redlatch/redlatch/tests/sim/results"
)

// lengthEnv is the variable with how long all takes.
const lengthEnv = "REDLATCH_CAMPAIGN_LENGTH"

const fleet = 3 // processes at a time

// together is how many plays go on side by side: as many as go test was told.
func together(t *testing.T) int {
	t.Helper()
	n, err := strconv.Atoi(flag.Lookup("test.parallel").Value.String())
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A process is a child, with its ways to the servers.
type process struct {
	number int
	cmd    *exec.Cmd
	in     io.Closer
	ways   []*faultnet.Proxy
	read   chan struct{} // closed when all that it wrote is read
	ended  chan struct{} // closed when it was waited for
	err    error         // how it ended
	killed bool
}

type campaign struct {
	*testing.T
	place

	typ      string
	seed     uint64
	chance   *rand.Rand // of what goes wrong with processes
	ways     [fleet][]*faultnet.Proxy
	roles    [fleet]role
	living   []*process
	redisson *redisson // nil: none is in the fleet
	born     int
	began    time.Duration

	mu     sync.Mutex
	lines  map[[2]int]sim.Line // the last one of each claim
	losses []sim.Loss
	struck map[string]int
}

// A cast is who plays what where.
type cast struct {
	topology int
	typ      string
	redisson bool // a process of Redisson is in the fleet
}

// plays returns all that there are.
func plays() (all []cast) {
	for i := range topologies {
		for _, typ := range sim.Held() {
			all = append(all, cast{topology: i, typ: typ})
		}
		for _, typ := range rivals(topologies[i].name) {
			all = append(all, cast{topology: i, typ: typ, redisson: true})
		}
	}
	return all
}

// TestNoTwoProcessesTrustWhateverGoesWrong plays all types that are held, in each
// topology, each on a kind of server that chance chooses.
func TestNoTwoProcessesTrustWhateverGoesWrong(t *testing.T) {
	locktest.Long(t)
	length := 2 * time.Minute
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
	all, kinds := plays(), testserver.EveryKind()
	rounds := (len(all) + together(t) - 1) / together(t)
	length /= time.Duration(rounds)
	figures := &figures{T: t, source: results.SourceNow(t.Context())}
	t.Cleanup(figures.tell) // when all have been played
	for i, p := range all {
		name := topologies[p.topology].name + "/" + p.typ
		if p.redisson {
			name += "/Redisson"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			end := time.Now().Add(length)
			chance := rand.New(rand.NewPCG(seed, uint64(i))) //nolint:gosec // it has to be the same each time
			one := results.Line{Topology: topologies[p.topology].name, Type: p.typ, Wrong: true}
			defer func() { figures.add(one) }() // also if it does not get to its end
			c := newCampaign(t, p, kinds[(i+int(seed%97))%len(kinds)], seed, chance)
			c.play(end)
			one = c.judged()
		})
	}
}

// newCampaign begins the servers and the fleet of a play.
func newCampaign(t *testing.T, p cast, kind testserver.Kind, seed uint64, chance *rand.Rand) *campaign {
	t.Helper()
	c := &campaign{
		T: t, typ: p.typ, seed: seed, chance: rand.New(rand.NewPCG(seed, chance.Uint64())), //nolint:gosec // it has to be the same each time
		lines: map[[2]int]sim.Line{}, struck: map[string]int{},
	}
	var args []string
	if p.redisson {
		args = testserver.Open // Redisson's user may do more than ours
	}
	c.place = topologies[p.topology].start(t, kind, chance, args...)
	c.began = now()
	c.begin()
	if p.redisson {
		c.redisson = c.enlist()
	}
	return c
}

// begin begins the processes of a fleet.
func (c *campaign) begin() {
	c.Helper()
	for i := range fleet {
		c.roles[i] = c.role
		c.roles[i].Ways = map[string]string{}
		for _, n := range c.nodes {
			way := faultnet.New(n.Dial)
			c.Cleanup(way.Close)
			addr, err := way.Listen()
			if err != nil {
				c.Fatal(err)
			}
			c.ways[i] = append(c.ways[i], way)
			c.roles[i].Ways[n.Addr()] = addr
		}
	}
	c.Cleanup(func() { // also if not all of them can begin
		for _, p := range c.living {
			p.kill()
		}
	})
	for i := range fleet {
		p, err := c.spawn(i)
		if err != nil {
			c.Fatal(err)
		}
		c.living = append(c.living, p)
	}
}

// TestTheFleetsCheckerNoticesALoss has a server lose its data behind the back of
// the checker.
func TestTheFleetsCheckerNoticesALoss(t *testing.T) {
	locktest.Long(t)
	t.Parallel()
	c := newCampaign(t, cast{typ: "lock"}, testserver.Redis, 1, rand.New(rand.NewPCG(1, 1))) //nolint:gosec // no secret
	for end := time.Now().Add(locktest.Generous); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		c.nodes[0].MustDo("FLUSHALL")
		if wrong := c.verdict().Wrong; len(wrong) > 0 {
			t.Log(wrong[0])
			return
		}
	}
	t.Error("nobody notices")
}

// verdict judges what has been read.
func (c *campaign) verdict() sim.Verdict {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []sim.Line
	for _, l := range c.lines {
		all = append(all, l)
	}
	return sim.Judge(c.typ, all, c.losses...)
}

// play has one thing go wrong with a process, and one with the servers, at a time,
// and then all processes end.
func (c *campaign) play(end time.Time) {
	c.Helper()
	var processes sync.WaitGroup
	ofServers := rand.New(rand.NewPCG(c.seed, c.chance.Uint64())) //nolint:gosec // it has to be the same each time
	processes.Go(func() {
		for time.Now().Before(end) {
			time.Sleep(upTo(c.chance, 3*time.Second))
			c.strike()
		}
	})
	defer processes.Wait()
	for time.Now().Before(end) {
		pause, strike := c.next(ofServers)
		time.Sleep(pause)
		strike()
	}
}

// next returns what goes wrong with the servers next, and after which pause. It
// draws as much each time, whatever becomes of it: a slot that moves draws
// something for each key that happens to be there.
func (c *campaign) next(chance *rand.Rand) (pause time.Duration, strike func()) {
	pause, f, d := upTo(chance, 6*time.Second), c.faults[chance.IntN(len(c.faults))], upTo(chance, 2*watchdog)
	own := rand.New(rand.NewPCG(c.seed, chance.Uint64())) //nolint:gosec // it has to be the same each time
	return pause, func() {
		c.Helper()
		if f.loss != "" {
			c.mu.Lock()
			c.losses = append(c.losses, sim.Loss{What: f.loss, From: now(), To: 1<<63 - 1})
			c.mu.Unlock()
		}
		f.strike(d, own)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.struck[f.what]++
		if f.loss != "" {
			c.losses[len(c.losses)-1].To = now()
		}
	}
}

// What goes wrong next must not hang on how many keys a slot had when it moved: a
// seed would not repeat it.
func TestAFaultOfTheServersDrawsNothingOfTheNextOnes(t *testing.T) {
	var played [2][]string
	for i := range played {
		c := &campaign{T: t, seed: 7, struck: map[string]int{}}
		for name := range 5 {
			c.faults = append(c.faults, serverFault{what: fmt.Sprint(name), strike: func(d time.Duration, own *rand.Rand) {
				played[i] = append(played[i], fmt.Sprint(name, d, own.Uint64()))
				for range i * name {
					own.Uint64()
				}
			}})
		}
		chance := rand.New(rand.NewPCG(7, 7)) //nolint:gosec // no secret
		for range 100 {
			pause, strike := c.next(chance)
			strike()
			played[i] = append(played[i], pause.String())
		}
	}
	if !slices.Equal(played[0], played[1]) {
		t.Errorf("%v, and where some draw more %v", played[0], played[1])
	}
}

// A loss with another name has no line on the page, and is excused without anybody
// seeing it.
func TestTheLossesOfACampaignAreThoseOfTheSimulation(t *testing.T) {
	losses := 0
	for _, f := range append((&set{}).faults(), serverFault{loss: wiped}) {
		if f.loss == "" {
			continue
		}
		losses++
		if !slices.Contains(sim.Losing(), f.loss) {
			t.Errorf("%s: no loss of data is called %q", f.what, f.loss)
		}
	}
	if losses < 5 {
		t.Errorf("only %d faults lose data", losses)
	}
}

// judged ends all, and returns the figures of the play.
func (c *campaign) judged() results.Line {
	c.Helper()
	for _, p := range c.living {
		if err := p.in.Close(); err != nil {
			c.Error(err)
		}
	}
	if c.redisson != nil {
		c.redisson.stop()
	}
	for _, p := range c.living {
		c.await(p)
	}
	v := c.verdict()
	f := c.figure(v)
	if v.Claims < int(f.Seconds/3) {
		c.Errorf("so few show nothing: %d claims in %.0f s", v.Claims, f.Seconds)
	}
	for i, text := range v.Wrong {
		if i < 10 {
			c.Error(text)
		}
	}
	if len(v.Wrong) > 0 {
		for _, l := range c.losses {
			c.Logf("%v to %v: %s", l.From, l.To, l.What)
		}
	}
	f.Wrong = c.Failed()
	text, err := json.Marshal(f)
	c.Logf("%s, %v", text, err)
	return f
}

// spawn begins a process, on one of the ways.
func (c *campaign) spawn(way int) (*process, error) {
	p := &process{number: fleet*c.born + way, ways: c.ways[way], read: make(chan struct{}), ended: make(chan struct{})}
	c.born++
	r := c.roles[way]
	r.Type, r.Process, r.Seed = c.typ, p.number, c.seed
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	p.cmd = exec.Command(os.Args[0]) //nolint:gosec,noctx // this program; it is killed at the end
	p.cmd.Env = append(os.Environ(), roleEnv+"="+string(text))
	p.cmd.SysProcAttr = peer.DieWithUs()
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
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
		return nil, err
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
			c.note(l)
		}
	}()
	return p, nil
}

func (c *campaign) note(l sim.Line) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines[[2]int{l.Process, l.Number}] = l
}

func (p *process) kill() {
	if p.killed {
		return
	}
	p.killed = true
	_ = p.cmd.Process.Kill() // fails only if it has ended
	<-p.ended
}

// await waits until a process has ended by itself: each worker gives up what it
// waits for, and has to get through what it does.
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

// strike has one thing go wrong with a process or its ways, and returns when it is
// over.
func (c *campaign) strike() {
	menu := []string{"process is killed", "process stands still", "ways are cut", "requests are cut", "replies are cut", "connections break", "requests and replies are late or lost"}
	if c.redisson != nil {
		menu = append(menu, "Redisson is killed", "Redisson stands still")
	}
	what := menu[c.chance.IntN(len(menu))]
	i, d := c.chance.IntN(fleet), upTo(c.chance, 2*watchdog)
	p := c.living[i]
	ways := p.ways
	if c.chance.IntN(3) == 0 { // one of them only: it still hears of the others
		n := c.chance.IntN(len(ways))
		ways = ways[n : n+1]
	}
	each := func(f func(way *faultnet.Proxy)) {
		for _, way := range ways {
			f(way)
		}
	}
	signal := func(s os.Signal) {
		if err := p.cmd.Process.Signal(s); err != nil {
			c.Error(what, ": ", err)
		}
	}
	switch what {
	case "process is killed":
		p.kill()
		next, err := c.spawn(i)
		if err != nil {
			c.Error(err)
			return
		}
		c.living[i] = next
	case "process stands still":
		signal(syscall.SIGSTOP)
		time.Sleep(d)
		signal(syscall.SIGCONT)
	case "ways are cut":
		each(func(way *faultnet.Proxy) { way.Blackhole(true) })
		time.Sleep(d)
		each(func(way *faultnet.Proxy) { way.Blackhole(false); way.BreakAll() })
	case "requests are cut": // until they come, all late
		each(func(way *faultnet.Proxy) {
			way.SetRule(func(faultnet.Request) faultnet.Action { return faultnet.Delay(d) })
		})
		time.Sleep(d)
		each(func(way *faultnet.Proxy) { way.SetRule(nil) })
	case "replies are cut":
		each(func(way *faultnet.Proxy) { way.OneWay(true) })
		time.Sleep(d)
		each(func(way *faultnet.Proxy) { way.OneWay(false); way.BreakAll() })
	case "connections break":
		each((*faultnet.Proxy).BreakAll)
	case "requests and replies are late or lost":
		own := rand.New(rand.NewPCG(c.seed, c.chance.Uint64())) //nolint:gosec // it has to be the same each time
		var mu sync.Mutex
		each(func(way *faultnet.Proxy) {
			way.SetRule(func(faultnet.Request) faultnet.Action {
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
		})
		time.Sleep(d)
		each(func(way *faultnet.Proxy) { way.SetRule(nil) })
	case "Redisson is killed":
		c.redisson.kill()
	case "Redisson stands still":
		c.redisson.stall(d)
	default:
		panic(fmt.Sprint("no fault ", what))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.struck[what]++
}
