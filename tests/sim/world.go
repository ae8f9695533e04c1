package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/tests/sim/linear"
)

// A Plan says what is played. All else follows from its seed.
type Plan struct {
	Seed    uint64
	Type    string
	Trouble time.Duration // for which there are faults and workers
	Faults  []string      // that may happen
	Skip    []int         // faults that are left out, by number
	Peer    bool          // a process of Redisson takes part
	Traced  bool

	Recording *Recording `json:"-"` // if it is not nil, it gets what the servers were asked and answered
}

// A Report is what came of a plan.
type Report struct {
	Wrong    []string // what must not be; nothing: all was right
	Struck   map[string]int
	Numbers  []int // of the faults
	Holds    int
	Theirs   int // holds of Redisson's
	Told     int // of a loss
	Excused  int // holds that a loss of data may have taken
	Scripts  int
	Lost     int // requests and replies
	Late     int
	Twice    int                      // requests that were executed once more
	Overlaps map[string]time.Duration // the longest, by how data was lost
	Duration time.Duration
	Log      []string

	// If something was wrong, what was called, what struck meanwhile, and when it was
	// wrong at first: for a drawing.
	Histories []linear.History `json:",omitempty"`
	Marks     []linear.Mark    `json:",omitempty"`
	At        time.Duration
}

const (
	processes = 3
	workers   = 3 // of a process

	toEnd   = 3 * time.Minute   // in which all workers have ended, once there is no trouble any more
	toCalm  = 30 * time.Second  // in which anybody has it, if nobody keeps it
	toClean = 200 * time.Second // after which nothing is left, but what has no end
)

type world struct {
	Plan
	history

	calls calls
	kind  kind
	turns []chan struct{} // one for each site
	nests atomic.Int64
	busy  sync.WaitGroup

	cluster *cluster     // nil: there is none
	wholes  []*whole     // guarded by history.mu
	theirs  atomic.Int64 // holds of Redisson's

	mu     sync.Mutex
	nodes  []*node
	sites  []*node // the primary of each
	living []*process
	all    []*process
	struck map[string]int

	forcing  map[*link]*loss     // what is forced by whom; guarded by history.mu
	releases map[string]*release // by the ids in the server; guarded by history.mu

	peers   []*peer // that live
	invited int
}

// Play plays a plan, in the bubble of testing/synctest that it is called in.
func Play(plan Plan) *Report {
	w := &world{Plan: plan, kind: kindOf(plan.Type), struck: map[string]int{}, forcing: map[*link]*loss{}, releases: map[string]*release{}}
	w.history = history{
		start: time.Now(), capacity: w.kind.capacity, footings: map[[2]string]*footing{}, dated: plan.Type == "election", traced: plan.Traced,
		resigned: map[[2]string]time.Duration{}, takes: map[string]take{},
	}
	w.calls.rounds, w.calls.more = map[string]*round{}, map[string]int{}
	w.calls.lives, w.calls.arrived = map[life][]sign{}, map[string]bool{}
	for site := range sitesOf(plan) {
		s := newNode()
		s.site = site
		s.fast = float64(newChance(plan.Seed, uint64(1+site)).n(4001)-2000) / 1e5 // from 2 % slow to 2 % fast
		s.record = plan.Recording.begin()
		w.replicate(s)
		w.nodes, w.sites = append(w.nodes, s), append(w.sites, s)
		w.turns = append(w.turns, make(chan struct{}, 1))
	}
	if sharded(plan.Type) {
		w.cluster = newCluster(w.sites, w.fail)
	}
	for range processes {
		w.spawn()
	}
	if w.Peer {
		w.invite()
	}
	var faults sync.WaitGroup
	for lane := range lanes {
		faults.Go(func() { w.trouble(lane) })
	}
	faults.Wait()
	time.Sleep(w.Trouble - w.now())
	w.calm()
	w.trace("calm")
	w.wait()
	time.Sleep(w.tail())
	for _, p := range w.alive() {
		w.getAll(p)
	}
	// What the dead have sent may come until now, twice at most, and take the turn of
	// who lives.
	time.Sleep(w.Trouble + 2*latest + toCalm - w.now())
	for _, p := range w.alive() {
		w.outlast(p)
		for _, c := range w.crowds() {
			w.takeTurns(p, object(p.number%objects), c)
		}
	}
	if living := w.alive(); w.forcible() {
		for i, p := range living {
			w.takeAway(p, living[(i+1)%len(living)], object(i%objects))
		}
	}
	time.Sleep(toClean)
	w.close()
	w.checkEvents()
	w.checkOrders()
	w.check()
	switch w.Type {
	case "latch":
		w.checkOpenings()
	case "red":
		w.checkWholes()
	}
	return w.report()
}

// primary returns the server of the first site, which is most often the only one.
func (w *world) primary() *node { return w.primaries()[0] }

// primaries returns the server of each site.
func (w *world) primaries() []*node {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.sites)
}

// stored says whether what is claimed belongs to the claim's id now, in the server
// of its site.
func (w *world) stored(c *claim) bool {
	if w.cluster != nil {
		return w.cluster.has(c)
	}
	return w.primaries()[c.site].has(c)
}

func (w *world) alive() []*process {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.living)
}

// newClients returns those of a process: one on each link, or one of a cluster.
func (w *world) newClients(links []*link, cfg redlatch.Config) (all []*redlatch.Client) {
	var drivers []driver.Redis
	switch w.Type {
	case "cluster":
		cfg.Redisson.PubSub = redlatch.PubSubClassic
		drivers = []driver.Redis{newClusterLink(links)}
	case "endpoint":
		drivers = []driver.Redis{&endpointLink{clusterLink: newClusterLink(links)}}
	case "acked": // what does not reach the replica does not count
		cfg.Acks, cfg.AckReplicas = redlatch.AckRequired, 1
		drivers = []driver.Redis{ackedLink{links[0]}}
	default:
		for _, l := range links {
			drivers = append(drivers, l)
		}
	}
	for _, d := range drivers {
		c, err := redlatch.New(d, cfg)
		if err != nil {
			panic(err)
		}
		all = append(all, c)
	}
	return all
}

// spawn begins a process.
func (w *world) spawn() {
	w.mu.Lock()
	n := len(w.all)
	w.mu.Unlock()
	c := newChance(w.Seed, uint64(100+n))
	air := newWeather(c)
	p := &process{number: n, watchdog: time.Duration(1+c.n(8)) * time.Second}
	if c.oneIn(3) && w.Type != "election" {
		p.maxHold = time.Second + c.upTo(4*time.Second)
	}
	for site, s := range w.primaries() {
		if site > 0 {
			air = newWeather(c)
		}
		p.links = append(p.links, w.linkTo(s, c, air, n))
		w.trace("process %d has a link to site %d, with %+v", n, site, air)
	}
	p.outage = 20 * time.Second // what nobody holds is lost for good if a request that gives it back fails
	if c.oneIn(2) && !slices.Contains(counts(), w.Type) {
		p.outage = 4*time.Second + c.upTo(16*time.Second)
	}
	p.clients = w.newClients(p.links, redlatch.Config{
		WatchdogTimeout: p.watchdog, MaxHold: p.maxHold, OutageTimeout: p.outage, CloseTimeout: closeTimeout,
	})
	p.client = p.clients[0]
	for _, c := range p.clients {
		w.trace("process %d is client %s, with a watchdog of %v", n, c.ID(), p.watchdog)
	}
	if w.kind.together == nil && c.oneIn(2) {
		w.observe(p)
	}
	p.life, p.die = context.WithCancel(bg)
	w.mu.Lock()
	w.living, w.all = append(w.living, p), append(w.all, p)
	w.mu.Unlock()
	for i := range workers {
		own := newChance(w.Seed, uint64(10_000+100*n+i))
		w.busy.Go(func() { w.work(p, own) })
	}
}

func (w *world) kill(p *process) {
	w.mu.Lock()
	w.living = slices.DeleteFunc(w.living, func(o *process) bool { return o == p })
	p.dead = true
	w.mu.Unlock()
	for _, l := range p.links {
		l.kill()
	}
	p.die()
}

// wait waits until all workers have ended.
func (w *world) wait() {
	done := make(chan struct{})
	go func() {
		w.busy.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(toEnd):
		for _, s := range w.primaries() {
			w.fail("a worker waits for ever; the server has %q", s.keys())
		}
		for _, p := range w.alive() {
			p.die()
		}
		<-done
	}
}

// getAll has a process get all of each resource, when nobody else wants it.
func (w *world) getAll(p *process) {
	for n := range objects {
		ctx, cancel := context.WithTimeout(bg, toCalm)
		var err error
		if w.kind.calm != nil {
			err = w.kind.calm(ctx, w, p, object(n))
		} else {
			var h *redlatch.Hold
			if h, err = w.whole(p, object(n)).acquire(ctx); err == nil {
				err = h.Release(bg)
			}
		}
		cancel()
		if err != nil {
			w.fail("in the calm, process %d and %s: %v", p.number, object(n), err)
		}
	}
}

// outlast has a process hold for longer than a lease, when nothing goes wrong: of
// shards, an object of each of two slots at once.
func (w *world) outlast(p *process) {
	if w.kind.once != nil || p.maxHold > 0 {
		return
	}
	var all []*redlatch.Hold
	for n := range objects {
		if n > 0 && !sharded(w.Type) {
			break
		}
		ctx, cancel := context.WithTimeout(bg, toCalm)
		h, err := w.whole(p, object(n)).acquire(ctx)
		cancel()
		if err != nil {
			w.fail("in the calm, process %d and %s: %v", p.number, object(n), err)
			continue
		}
		all = append(all, h)
	}
	time.Sleep(2 * p.watchdog)
	for _, h := range all {
		w.outlasts(p.number, h.Name(), h.Err())
		_ = h.Release(bg)
	}
}

// outlasts judges whether a hold is one still, when nothing could end it.
func (h *history) outlasts(process int, name string, ended error) {
	if ended != nil {
		h.fail("in the calm, process %d loses %s: %v", process, name, ended)
	}
}

// close closes all clients, and looks for what they have left.
func (w *world) close() {
	for _, p := range w.alive() {
		for _, c := range p.clients {
			if err := c.Close(); err != nil {
				w.fail("process %d, Close: %v", p.number, err)
			}
		}
	}
	time.Sleep(time.Second)
	for _, s := range w.primaries() {
		w.left(s)
	}
	for _, p := range w.all {
		if p.dead {
			for _, c := range p.clients {
				_ = c.Close() // nothing of it comes through
			}
		}
		p.die()
	}
	time.Sleep(time.Second) // what they have sent is over
	for _, s := range w.nodes {
		s.mini.Close()
	}
}

// left looks for what is left in a server.
func (w *world) left(s *node) {
	for _, key := range s.snapshot().keys {
		switch {
		case w.Type == "permits" && s.over(key): // the take of a process that has ended came after the last one of others
		case !w.stays(key.name):
			w.fail("the key %s is left in the server", key.name)
		case key.ttl == 0 && !w.endless(key.name):
			w.fail("the key %s is left in the server for ever", key.name)
		}
	}
	for _, channel := range s.channels() {
		w.fail("somebody still listens to %s", channel)
	}
}

// stays says whether a key has no end, or a late one: what numbers tokens, what
// says who a client is, the answers that a client may ask for again, a semaphore's
// number, a limiter's rate, a barrier's number of parties, and a latch that was
// given up.
func (w *world) stays(key string) bool {
	for _, begin := range []string{tokens, "redlatch_client:", "redlatch_session:"} {
		if strings.HasPrefix(key, begin) {
			return true
		}
	}
	switch w.Type {
	case "permits", "semaphore":
		return strings.HasPrefix(key, "orders")
	case "latch":
		return w.givenUp(key)
	case "barrier", "limiter":
		return strings.Contains(key, "orders")
	}
	return false
}

// endless says whether a key that stays has no end: what numbers tokens, a
// semaphore's number, a limiter's keys, and a latch that was given up.
func (w *world) endless(key string) bool {
	switch w.Type {
	case "permits", "semaphore":
		return strings.HasPrefix(key, "orders")
	case "limiter":
		return strings.Contains(key, "orders") && !strings.HasPrefix(key, "redlatch_")
	case "latch":
		return w.givenUp(key)
	}
	return strings.HasPrefix(key, tokens)
}

// holds returns how many holds there were, or calls that have worked.
func (w *world) holds() int {
	n := len(w.claims)
	for _, c := range w.calls.all {
		if c.worked() && c.had() {
			n++
		}
	}
	return n
}

func (w *world) report() *Report {
	r := &Report{Wrong: w.wrong, Struck: w.struck, Holds: w.holds(), Theirs: int(w.theirs.Load()), Told: w.lost, Overlaps: w.overlaps(), Duration: w.now(), Log: w.log}
	for _, c := range w.claims {
		if slices.ContainsFunc(w.losses, func(l *loss) bool { return l.hits(c, c.to) }) {
			r.Excused++
		}
	}
	for _, s := range w.nodes {
		r.Scripts += s.execs
	}
	for _, p := range w.all {
		for _, l := range p.links {
			l.set(func() { // a request may be executed once more to the end
				r.Lost += l.lost
				r.Late += l.late
				r.Twice += l.twice
			})
		}
	}
	for lane := range lanes {
		for _, f := range w.schedule(lane) {
			r.Numbers = append(r.Numbers, f.number)
		}
	}
	if len(r.Wrong) > 0 {
		r.Histories, r.Marks, r.At = w.histories(), w.allMarks(), w.first
	}
	return r
}

// Package replay plays a plan in a test of this package, since only a test can
// play one.
const (
	PlanEnv      = "REDLATCH_SIM_PLAN" // the variable with the plan, as JSON
	ReportBegins = "sim: report "      // how the line with the report begins, as JSON
)

// Standard returns the plan of a seed: an even one has all faults. With an odd one
// no data is lost, so that nothing excuses anything.
func Standard(seed uint64, typ string) (Plan, error) {
	if !slices.Contains(Types(), typ) {
		return Plan{}, fmt.Errorf("no type %q; there are %s", typ, strings.Join(Types(), ", "))
	}
	faults := Keeping()
	switch {
	case typ == "semaphore": // a process that dies takes its permits with it, and nobody says so
		faults = slices.DeleteFunc(faults, func(what string) bool { return what == "kill" || what == "shut down" })
	case slices.Contains(counts(), typ): // no lease bounds what a loss may excuse
	case sharded(typ):
		faults = append(faults, slices.Repeat(Clustered(), 7)...)
	case seed%2 == 0 && typ == "permits": // a permit is given back by its id only: nobody forces one
		faults = append(faults, slices.DeleteFunc(Losing(), func(what string) bool { return what == forced })...)
	case seed%2 == 0:
		faults = append(faults, Losing()...)
		faults = append(faults, slices.Repeat([]string{forced}, 3)...)
	}
	if typ == "acked" { // about half of the time
		faults = append(faults, slices.Repeat(Replicated(), 8)...)
	}
	peer := seed%3 > 0 && slices.Contains(shared(), typ) // in two of any three seeds that follow on each other
	return Plan{Seed: seed, Type: typ, Trouble: time.Minute, Faults: faults, Peer: peer}, nil
}

var errWrong = errors.New("something was wrong")

// Err returns an error if something was wrong, with the first of it.
func (r *Report) Err() error {
	if len(r.Wrong) == 0 {
		return nil
	}
	return fmt.Errorf("%w, %d times; at first:\n%s", errWrong, len(r.Wrong), strings.Join(r.Wrong[:min(len(r.Wrong), 5)], "\n"))
}
