package sim

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/redlatch/redlatch"
)

// lanes is how many faults act at a time. A fault lasts for less than longest.
const (
	lanes   = 2
	longest = 12 * time.Second
)

// A fault is one thing that goes wrong, with all that chance decides of it: to
// leave one out changes nothing of the others.
type fault struct {
	number int // by which Plan.Skip knows it
	what   string
	after  time.Duration // the one before it in its lane
	lasts  time.Duration
	victim int // of the processes that live then
	side   int
	own    *chance
}

// Keeping are the faults after which the server still has its data: of one process
// and its link, and of the server.
func Keeping() []string {
	return []string{
		"cut", "stall", "break", "kill", "shut down",
		"restart", "pause", "back", "full", "readonly disk", "loading", "busy", "replica", "no script",
	}
}

// Losing are those by which the server loses data.
func Losing() []string {
	return slices.Concat([]string{wiped}, restoring(), sparing())
}

// schedule returns the faults of a lane.
func (w *world) schedule(lane int) (all []fault) {
	draw := newChance(w.Seed, uint64(1000*slices.Index(Types(), w.Type)+10+lane)) // each type has faults of its own
	menu := w.Faults
	for at := time.Duration(0); at < w.Trouble && len(menu) > 0; {
		n := lane*1000 + len(all)
		f := fault{
			number: n, what: menu[draw.n(len(menu))], after: 200*time.Millisecond + draw.upTo(9*time.Second), lasts: draw.upTo(longest),
			victim: draw.n(1000), side: draw.n(3), own: newChance(w.Seed, uint64(1_000_000+n)),
		}
		at += f.after + f.lasts
		all = append(all, f)
	}
	return all
}

// trouble makes the faults of a lane, one after the other.
func (w *world) trouble(lane int) {
	for _, f := range w.schedule(lane) {
		time.Sleep(f.after)
		if w.now() >= w.Trouble {
			return
		}
		ends := time.After(f.lasts)
		if !slices.Contains(w.Skip, f.number) {
			w.trace("FAULT %d: %s for %v, process %d, site %d, side %d", f.number, f.what, f.lasts, w.victim(f).number, w.site(f), f.side)
			w.mark(f)
			w.strike(f)
		}
		<-ends
	}
}

func (w *world) victim(f fault) *process {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.living[f.victim%len(w.living)]
}

// site is where a fault happens, if it is that of a server, or of a way to one.
func (w *world) site(f fault) int { return f.victim / 10 % len(w.turns) }

// strike makes a fault.
func (w *world) strike(f fault) {
	w.mu.Lock()
	w.struck[f.what]++
	w.mu.Unlock()
	p, x, until := w.victim(f), w.kin(f), time.Now().Add(f.lasts)
	all, way := p.links, p.links[w.site(f)]
	if x != nil {
		all, way = []*link{x.link}, x.link
	}
	switch f.what {
	case "cut": // one way, the other, or both: nothing says so
		way.set(func() {
			if f.side != 0 {
				way.toDeaf = until
			}
			if f.side != 1 {
				way.deaf = until
			}
		})
	case "stall":
		for _, l := range all {
			l.set(func() { l.stands = until })
		}
	case "break":
		way.reconnect(nil)
	case "kill":
		if x != nil {
			w.killPeer(x)
			return
		}
		w.kill(p)
		w.spawn()
	case "shut down":
		w.shutDown(p, f.lasts)
	default:
		turn := w.turns[w.site(f)]
		turn <- struct{}{} // one at a time: each is about the server that is the primary then
		w.strikeServer(f, until)
		<-turn
	}
}

func (w *world) strikeServer(f fault, until time.Time) {
	s := w.primaries()[w.site(f)]
	ill := func(a ailment) { s.set(func() { s.trial, s.until = a, until }) }
	short := min(f.lasts, 2*time.Second)
	switch f.what {
	case "restart":
		w.restart(s, short, func() {})
	case "pause":
		s.set(func() { s.paused = until })
	case "back":
		w.history.mu.Lock()
		w.steps = append(w.steps, step{s.site, w.now(), f.lasts})
		w.history.mu.Unlock()
		s.step(-f.lasts)
	case "full":
		ill(noMemory)
	case "readonly disk":
		ill(noDisk)
	case "loading":
		ill(loading)
	case "busy":
		ill(busy)
	case "replica":
		ill(readOnly)
	case "no script":
		ill(noScript)
	case wiped:
		over := w.lose(s.site, f.what, "")
		w.restart(s, short, func() { s.load(snapshot{}) })
		over()
	case "older":
		over, was := w.lose(s.site, f.what, ""), s.snapshot()
		time.Sleep(f.own.upTo(time.Second))
		w.restart(s, short, func() { s.load(was) })
		over()
	case "failover":
		w.failover(s, f, short, 0)
	case "split":
		w.failover(s, f, 0, 3*time.Second)
	case "lag":
		s.set(func() { s.replica.stopLocked(until) })
	case "cluster down":
		ill(clusterDown)
	case "move":
		w.cluster.move(object(f.side%objects), f)
	case "takeover":
		w.takeover(s, f, short)
	case "evict":
		name := object(f.side % objects)
		if w.Type == "striped" || w.Type == "group" {
			over := w.lose(s.site, f.what, "")
			s.evict("orders")
			over()
			return
		}
		over := w.lose(s.site, f.what, name)
		s.evict(name)
		over()
	case "ahead":
		over := w.lose(s.site, f.what, "")
		s.step(f.lasts)
		over()
	case forced:
		w.force(w.victim(f), s.site, object(f.side%objects))
	default:
		panic("no fault " + f.what)
	}
}

// shutDown ends a process in order, which gives what it holds so much time, and
// begins another one.
func (w *world) shutDown(p *process, d time.Duration) {
	if p.ends.Swap(true) {
		return
	}
	w.spawn()
	w.busy.Go(func() {
		if w.kind.once == nil && w.kind.together == nil {
			w.straggle(p)
		}
		p.leaves.Store(true)
		ctx, cancel := context.WithTimeout(bg, d)
		errs := make([]error, len(p.clients))
		var all sync.WaitGroup
		for i, c := range p.clients {
			all.Go(func() {
				if errs[i] = c.Shutdown(ctx); errs[i] == nil && p.life.Err() == nil && w.kind.once == nil {
					w.checkOrphans(p.number, w.idsOf(c), w.now())
				}
			})
		}
		all.Wait()
		cancel()
		err := errors.Join(errs...)
		w.trace("process %d has shut down: %v", p.number, err)
		if err == nil && p.life.Err() == nil {
			w.nothingLeft(p)
		}
		w.mu.Lock()
		w.living = slices.DeleteFunc(w.living, func(o *process) bool { return o == p })
		w.mu.Unlock()
	})
}

// nothingLeft checks that the server has none of what a process has released, once
// its client says so. Nothing is owed for a take that comes after the release:
// comesBackLocked knows it.
func (w *world) nothingLeft(p *process) {
	time.Sleep(time.Millisecond) // contexts that have ended are noticed
	w.history.mu.Lock()
	defer w.history.mu.Unlock()
	for _, c := range w.claims {
		if c.process == p.number && c.how == redlatch.ErrClosed.Error() && w.Type != "election" { // the term of a leader has no end
			w.failLocked(w.now(), "process %d has shut down, and still had %s as %s", p.number, c.resource, c.id)
		}
		if c.process == p.number && c.how == released && !c.over && !w.comesBackLocked(c, w.now()) && w.stored(c) {
			w.failLocked(w.now(), "process %d has shut down, and the server still has %s as %s", p.number, c.resource, c.id)
		}
	}
}

// restart ends the server, and begins it again.
func (w *world) restart(s *node, d time.Duration, change func()) {
	s.set(func() { s.down, s.epoch = true, s.epoch+1 })
	time.Sleep(d)
	change()
	s.set(func() { s.down = false })
	for _, way := range w.ways(s.site) {
		way.reconnect(nil)
	}
}

// failover makes a replica the primary, that lacks what the primary has got in the
// last second. Without split nobody reaches a server for some time. With it,
// processes learn of the new primary one by one, while the old one still answers.
func (w *world) failover(old *node, f fault, down, split time.Duration) {
	over := w.lose(old.site, f.what, "")
	defer over()
	was := old.snapshot()
	time.Sleep(f.own.upTo(time.Second))
	if split == 0 {
		old.end()
		time.Sleep(down)
	}
	w.succeed(old, was, f, split)
}

// end ends a server.
func (s *node) end() { s.set(func() { s.down, s.epoch = true, s.epoch+1 }) }

// succeed makes a server that has just that the primary. Processes learn of it one
// by one, in so much time. Then the old one ends.
func (w *world) succeed(old *node, was snapshot, f fault, split time.Duration) {
	next := old.successor()
	next.record = w.Recording.begin()
	w.replicate(next)
	next.load(was)
	w.mu.Lock()
	w.nodes = append(w.nodes, next)
	w.sites[old.site] = next
	w.mu.Unlock()
	var learnt []time.Duration
	all := w.ways(old.site)
	for range all {
		learnt = append(learnt, f.own.upTo(split+1))
	}
	for d := time.Duration(0); len(all) > 0; d += 10 * time.Millisecond {
		for i := 0; i < len(all); {
			if learnt[i] > d {
				i++
				continue
			}
			all[i].reconnect(next)
			all, learnt = slices.Delete(all, i, i+1), slices.Delete(learnt, i, i+1)
		}
		time.Sleep(10 * time.Millisecond)
	}
	old.end()
	for _, way := range w.ways(old.site) { // those that were born meanwhile began with the new one, or the old
		way.set(func() { way.at = next })
	}
}

// calm ends all trouble.
func (w *world) calm() {
	for i := range w.primaries() {
		for _, way := range w.ways(i) {
			way.set(func() {
				way.air = weather{}
				way.toDeaf, way.deaf, way.stands = time.Time{}, time.Time{}, time.Time{}
			})
		}
	}
	for _, s := range w.primaries() {
		s.set(func() {
			s.paused, s.until = time.Time{}, time.Time{}
			s.replica.goOnLocked()
		})
	}
}
