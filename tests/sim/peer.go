package sim

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/wire"
	"github.com/redlatch/redlatch/tests/internal/redissonlua"
)

const (
	peerThreads = 2
	peerSlow    = 600 * time.Millisecond // what a thread waits for between two times, at most
)

// redissonScripts are by their names.
var redissonScripts = func() map[string]*driver.Script {
	all := map[string]*driver.Script{}
	for name, source := range redissonlua.Scripts {
		all[name] = driver.NewScript(name, source)
	}
	return all
}()

// A peer is a process of Redisson. It sends nothing again.
type peer struct {
	number   int
	id       string // of its client
	link     *link
	watchdog time.Duration // lockWatchdogTimeout
	life     context.Context
	die      context.CancelFunc
}

// shared are the types of which Redisson's steps are in package redissonlua, but
// for two. A thread that dies in the queue of a fair lock delays all that come
// behind it, by as long as Redisson thinks that those before it need. In a group
// an unlock that comes late frees a value whoever has it, because Redisson looks
// at the time of the client that sent it.
func shared() []string {
	return []string{"lock", "nonreentrant", "fenced", "readwrite", "multi", "spin", "permits", "election"}
}

// invite begins a peer.
func (w *world) invite() {
	w.mu.Lock()
	n := w.invited
	w.invited++
	w.mu.Unlock()
	c := newChance(w.Seed, uint64(300+n))
	x := &peer{number: 100 + n, id: fmt.Sprintf("%08x-0000-4000-8000-%012x", c.n(1<<30), n), watchdog: 30 * time.Second}
	if w.Type != "readwrite" && c.oneIn(2) { // a reader's renewals may shorten other holds if their leases are longer
		x.watchdog = maxLease + time.Second
	}
	// What Redisson loses stays taken for a lease: too much of that, and nobody has
	// anything.
	x.link = w.linkTo(w.primary(), c, weather{lost: 40 * c.n(3), slow: 20 * c.n(3), late: 80 * c.n(3), deaf: 10 * c.n(3)}, x.number)
	x.life, x.die = context.WithCancel(bg)
	w.mu.Lock()
	w.peers = append(w.peers, x)
	w.mu.Unlock()
	w.trace("process %d is Redisson's client %s, with a watchdog of %v and %+v", x.number, x.id, x.watchdog, x.link.air)
	for i := range peerThreads {
		own := newChance(w.Seed, uint64(30_000+100*n+i))
		w.busy.Go(func() {
			for nth := i; w.now() < w.Trouble && x.life.Err() == nil; nth += peerThreads {
				time.Sleep(own.upTo(peerSlow))
				w.foreign(x, nth, own)
			}
		})
	}
}

// kin returns the peer that a fault hits instead of one of our processes, or nil.
func (w *world) kin(f fault) *peer {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.peers) == 0 || f.victim/10%(processes+1) != 0 {
		return nil
	}
	return w.peers[len(w.peers)-1]
}

// killPeer ends a peer, and begins another one.
func (w *world) killPeer(x *peer) {
	w.mu.Lock()
	w.peers = slices.DeleteFunc(w.peers, func(o *peer) bool { return o == x })
	w.mu.Unlock()
	x.link.kill()
	x.die()
	w.invite()
}

// ways returns the links to a site of all that live. Redisson's go to the first
// one.
func (w *world) ways(site int) (all []*link) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.living {
		all = append(all, p.links[site])
	}
	for _, x := range w.peers {
		if site == 0 {
			all = append(all, x.link)
		}
	}
	return all
}

// A thread is one of Redisson's that wants something. Each acquisition has a
// thread of its own, and with it an owner of its own: what one sends that comes
// late is nothing to the next.
type thread struct {
	*peer

	owner string
	name  string
	what  string // it wants: the beginning of its scripts' names
	lease time.Duration
	until time.Time // it believes that it has it, for all that the server has said
	sent  time.Time // when that was asked for
}

// send sends a script, and says whether there is an answer.
func (t *thread) send(script string, keys, args []string) (driver.Reply, bool) {
	t.sent = time.Now()
	r, err := t.link.Run(t.life, redissonScripts[script], keys, args)
	return r, err == nil && t.life.Err() == nil
}

func (t *thread) channel() string {
	switch t.what {
	case "read", "write":
		return wire.Prefix(wire.RWChannel, t.name)
	case "permit":
		return wire.Prefix(wire.SemaphoreChannel, t.name)
	}
	return wire.Prefix(wire.LockChannel, t.name)
}

// take tries once. It returns for how long the server says that it is taken.
func (t *thread) take() (got, answered bool, ttl time.Duration) {
	ms := strconv.FormatInt(t.lease.Milliseconds(), 10)
	var r driver.Reply
	switch t.what {
	case "read":
		r, answered = t.send("redisson.read", []string{t.name, "{" + t.name + "}:" + t.owner + ":rwlock_timeout"}, []string{ms, t.owner})
	case "write":
		r, answered = t.send("redisson.write", []string{t.name}, []string{ms, t.owner})
	case "permit":
		r, answered = t.send("redisson.permit", t.permitKeys(), []string{t.owner, t.channel(), serverTime + "0", serverTime + ms})
		got = r.Kind == driver.ReplyString
		return answered && got, answered, time.Second // it says nothing
	default:
		r, answered = t.send("redisson.take", []string{t.name}, []string{ms, t.owner})
	}
	return answered && r.Kind == driver.ReplyNil, answered, time.Duration(r.Int) * time.Millisecond
}

func (t *thread) permitKeys() []string {
	return []string{t.name, wire.Suffix(t.name, wire.PermitTimeout)}
}

// confirm notes that what was sent last has been confirmed. Nobody tells a thread
// of Redisson how the server's clock runs.
func (t *thread) confirm() {
	if until := t.sent.Add(t.lease*97/100 - 10*time.Millisecond); until.After(t.until) {
		t.until = until
	}
}

// renew does what the watchdog does. It returns false if the server says that it
// is gone.
func (t *thread) renew() bool {
	ms := strconv.FormatInt(t.lease.Milliseconds(), 10)
	script, keys, owner := "redisson.renew", []string{t.name}, t.owner
	switch t.what {
	case "read":
		script, keys = "redisson.reads on", []string{t.name, "{" + t.name + "}"}
	case "write":
		owner = wire.WriteField(owner)
	}
	r, answered := t.send(script, keys, []string{owner, ms})
	if answered && r.Int == 1 {
		t.confirm()
	}
	return !answered || r.Int == 1
}

// unlock returns false if the server says that it was gone.
func (t *thread) unlock() bool {
	ms := strconv.FormatInt(t.watchdog.Milliseconds(), 10)
	var r driver.Reply
	var answered bool
	switch t.what {
	case "read":
		r, answered = t.send("redisson.unread", []string{t.name, "{" + t.name + "}"}, []string{t.owner, t.channel()})
	case "write":
		r, answered = t.send("redisson.unwrite", []string{t.name}, []string{t.owner, t.channel(), ms})
	case "permit":
		r, answered = t.send("redisson.permit.release", t.permitKeys(), []string{t.owner, t.channel()})
		return !answered || r.Int == 1
	default:
		r, answered = t.send("redisson.unlock", []string{t.name}, []string{t.owner, t.channel(), ms})
	}
	return !answered || r.Kind != driver.ReplyNil
}

// foreign has a thread of Redisson try to get something for some time, hold it,
// and release it.
func (w *world) foreign(x *peer, nth int, own *chance) {
	t := &thread{peer: x, owner: fmt.Sprintf("%s:%d", x.id, nth), name: object(own.n(objects)), what: w.Type, lease: x.watchdog}
	weight, leased := w.kind.capacity, own.oneIn(2)
	switch w.Type {
	case "readwrite":
		t.what = "write"
		if own.n(3) > 0 {
			t.what, weight = "read", 1
		}
	case "permits":
		t.what, weight, leased = "permit", 1, true // without a lease one that is lost is never given back
		t.owner = fmt.Sprintf("%016x", nth<<8|x.number)
	}
	if leased {
		t.lease = 200*time.Millisecond + own.upTo(maxLease-200*time.Millisecond)
	}
	call := w.now()
	if !w.getFor(t, own.upTo(3*time.Second)) {
		return
	}
	c := claim{call: call, resource: t.name, id: t.owner, weight: weight, process: x.number, nest: w.nest(), lease: t.lease}
	if t.what == "permit" {
		c.id = hex.EncodeToString([]byte(t.owner))
	}
	w.theirs.Add(1)
	w.holdForeign(t, &c, leased, own)
}

// getFor takes it as Redisson's tryLock does: it asks, listens, and asks again
// when it hears of a release or when the lease is over that the server has told
// it.
func (w *world) getFor(t *thread, wait time.Duration) bool {
	ends := time.Now().Add(wait)
	if got, answered, _ := t.take(); got || !answered {
		return w.got(t, got)
	}
	news := make(chan struct{}, 1)
	stop := t.link.Subscribe(t.channel(), false, func(driver.Notice) {
		select {
		case news <- struct{}{}:
		default:
		}
	})
	defer stop()
	for t.life.Err() == nil && time.Now().Before(ends) {
		got, answered, ttl := t.take()
		if got || !answered {
			return w.got(t, got)
		}
		timer := time.NewTimer(min(max(ttl, time.Millisecond), time.Until(ends)))
		select {
		case <-timer.C:
		case <-news:
		case <-t.life.Done():
		}
		timer.Stop()
	}
	return false
}

func (w *world) got(t *thread, got bool) bool {
	if got {
		t.confirm()
	}
	return got && time.Now().Before(t.until)
}

// holdForeign holds as a thread of Redisson does, for as long as it can believe
// it.
func (w *world) holdForeign(t *thread, c *claim, leased bool, own *chance) {
	all := []*claim{c}
	w.begin(all)
	defer context.AfterFunc(t.life, func() { w.end(all, "killed") })()
	stay := own.upTo(40 * time.Millisecond)
	if own.oneIn(10) {
		stay = own.upTo(12 * time.Second) // until the watchdog has renewed it
	}
	until, renewal := time.Now().Add(stay), time.Now().Add(t.lease/3)
	for {
		next := until
		if t.until.Before(next) {
			next = t.until
		}
		if !leased && renewal.Before(next) {
			next = renewal
		}
		timer := time.NewTimer(time.Until(next))
		select {
		case <-timer.C:
		case <-t.life.Done():
			timer.Stop()
			w.end(all, "killed")
			return
		}
		now := time.Now()
		switch {
		case !now.Before(t.until):
			w.end(all, "its lease may be over")
			return
		case !now.Before(until):
			w.end(all, released)
			if believed := t.until; !t.unlock() && time.Now().Before(believed) && t.life.Err() == nil && !w.excused(all) {
				w.fail("Redisson's process %d unlocks %s as %s, and is told that it was gone: nothing took it away", t.number, t.name, t.owner)
			}
			return
		}
		renewal = now.Add(t.lease / 3)
		believed := t.until
		end := time.AfterFunc(time.Until(believed), func() { w.end(all, "its lease may be over") })
		gone := !t.renew()
		if end.Stop(); gone {
			if time.Now().Before(believed) && !w.excused(all) {
				w.fail("Redisson's process %d renews %s as %s, and is told that it is gone: nothing took it away", t.number, t.name, t.owner)
			}
			w.end(all, "gone")
			return
		}
	}
}

// tail is for how long what a world's processes have left may stay taken, when
// they have ended.
func (w *world) tail() time.Duration {
	if w.Peer {
		return latest + 30*time.Second
	}
	return maxLease
}
