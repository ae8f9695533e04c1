package permit

import (
	"cmp"
	"context"
	"crypto/rand"
	"strconv"
	"time"

	"github.com/redlatch/redlatch/internal/callsite"
	"github.com/redlatch/redlatch/internal/claim"
	"github.com/redlatch/redlatch/internal/fact"
	"github.com/redlatch/redlatch/internal/handoff"
	"github.com/redlatch/redlatch/internal/holdctx"
	"github.com/redlatch/redlatch/internal/lua"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/script"
	"github.com/redlatch/redlatch/internal/wire"
)

// MostAtOnce is how many permits one request may be about: a script that takes
// long keeps the server from everybody else.
const MostAtOnce = 10_000

// Expirable is the name of a semaphore whose permits have ids and leases, for a
// client.
type Expirable struct {
	Key string // in Redis

	all     *Semaphores
	channel string
	keys    []string // of how many permits are free, and of those that are given
}

// Expirable returns the semaphore that has this name in Redis.
func (all *Semaphores) Expirable(key string) Expirable {
	return Expirable{
		Key: key, all: all, channel: wire.Prefix(wire.SemaphoreChannel, key),
		keys: []string{key, wire.Suffix(key, wire.PermitTimeout)},
	}
}

// Name returns the semaphore's name, as its user gave it.
func (s *Expirable) Name() string { return s.all.Server.Name(s.Key) }

// A Want is what a caller wants.
type Want struct {
	N        int           // permits
	Lease    time.Duration // of each, or for which the watchdog renews them; 0: the watchdog's of the client
	HasLease bool          // each ends with it; else the watchdog keeps them
	MaxHold  time.Duration // the longest that it does; 0: that of the client
	Once     bool          // does not wait
	Permits  int           // gives one that has not been given any so many; 0: does not
	Until    time.Time     // the end of its waiting; zero: that of its context
	Site     callsite.Site
	Note     string // what the permits are for, until their holder says something else
}

// Acquire lines up for permits.
func (s *Expirable) Acquire(ctx context.Context, want Want) ([]*Permit, error) {
	server := s.all.Server
	if server.Closed() {
		return nil, request.ErrClosed
	}
	server.Pool.Enter()
	defer server.Pool.Leave()
	want.Lease = cmp.Or(want.Lease, server.Length)
	var late request.Lateness
	came := time.Now()
	for {
		w := &expirableWaiter{
			Want: wanted{Want: want, ids: newIDs(want.N)}, Once: want.Once,
			Wait: claim.Wait{Ctx: ctx, Since: came, Until: want.Until, Site: want.Site},
		}
		next, err := s.all.expirable.wait(s, w)
		if err != nil {
			return nil, s.busy(err, next)
		}
		ps := s.begin(w)
		if server.Closed() {
			// Nobody works under these permits yet, so they need not wait for the
			// end of their lease.
			for _, p := range ps {
				p.stop(request.ErrClosed, "")
			}
			s.discard(w.Want.ids, w.Want.uncertain)
			return nil, request.ErrClosed
		}
		if ps != nil {
			return ps, nil
		}
		s.discard(w.Want.ids, w.Want.uncertain) // the reply came too late to trust it
		if err := late.Again(ctx, server, want.Once, want.Until); err != nil {
			return nil, s.busy(err, next)
		}
	}
}

// busy returns why a caller has no permits.
func (s *Expirable) busy(err error, next time.Duration) error {
	return s.all.Server.Public(handoff.GaveUp(err, fact.Busy{Name: s.Name(), Kind: claim.Expirable, TTL: next}))
}

// begin makes the permits that a caller was given live, all of them or none.
func (s *Expirable) begin(w *expirableWaiter) []*Permit {
	now := time.Now()
	ps := make([]*Permit, len(w.Want.ids))
	for i, id := range w.Want.ids {
		p := newPermit(s, w, id, now)
		if p.lease.Left(now) <= 0 || !p.begin() {
			for _, earlier := range ps[:i] {
				earlier.stop(holdctx.ErrReleased, "")
			}
			return nil
		}
		ps[i] = p
	}
	return ps
}

// newIDs returns ids as they stand in Redis. None is ever used again.
func newIDs(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		var id [16]byte
		_, _ = rand.Read(id[:]) // never fails
		ids[i] = string(id[:])
	}
	return ids
}

// TrySet gives the semaphore n permits, if it has not been given any before. How
// its request fares is noted for others that wait for it, unless asks is nil.
func (s *Expirable) TrySet(ctx context.Context, n int, asks *request.Refusals) (set bool, err error) {
	answer, err := s.send(ctx, request.Count{Script: lua.ExpirableTrySet, Keys: s.keys, Args: []string{s.channel, strconv.Itoa(n)}, Refusals: asks})
	return answer == 1, err
}

// Set sets how many permits there are, those included that are given.
func (s *Expirable) Set(ctx context.Context, n int) error {
	_, err := s.count(ctx, lua.ExpirableSet, s.keys, s.channel, strconv.Itoa(n))
	return err
}

// Add adds n permits.
func (s *Expirable) Add(ctx context.Context, n int) error {
	_, err := s.count(ctx, lua.ExpirableAdd, s.keys, s.channel, strconv.Itoa(n))
	return err
}

// Delete deletes the semaphore. Permits of this client learn it at once.
func (s *Expirable) Delete(ctx context.Context) (deleted bool, err error) {
	answer, err := s.count(ctx, lua.ExpirableDelete, s.keys)
	for _, p := range s.all.live.of(s.Key) {
		s.all.Clock.Check(&p.lease)
	}
	return answer == 1, err
}

// Lives says after how many ms the semaphore ends; "0": never. It says whether
// there is one.
func (s *Expirable) Lives(ctx context.Context, ms string) (there bool, err error) {
	answer, err := s.count(ctx, lua.KeyExpire, s.keys, ms, "string")
	return answer == 1, err
}

// count runs a script that counts. It does so once, whatever replies are lost.
func (s *Expirable) count(ctx context.Context, sc *script.Script, keys []string, args ...string) (int64, error) {
	return s.send(ctx, request.Count{Script: sc, Keys: keys, Args: args})
}

func (s *Expirable) send(ctx context.Context, x request.Count) (int64, error) {
	x.Acks = true
	return s.all.Server.Sessions.Do(ctx, wire.Session(s.Key, s.all.Client, "permits"), x)
}

// Count asks how many permits are free and how many are given.
func (s *Expirable) Count(ctx context.Context) (free, given int, err error) {
	call := s.all.Server.Question(lua.ExpirableCount, s.keys)
	call.Args = []string{s.channel}
	reply, err := call.Run(ctx)
	if err != nil {
		return 0, 0, err
	}
	if len(reply.List) != 2 {
		return 0, 0, request.Unexpected(reply, lua.ExpirableCount)
	}
	free, err = request.Number(reply.List[0], s.Key, "semaphore")
	return free, int(reply.List[1].Int), err
}

// release prepares the release of ids that are ours.
func (s *Expirable) release(ids []string) request.Call {
	server := s.all.Server
	args := append([]string{s.channel, "0"}, ids...)
	return request.Call{Server: server, Script: lua.ExpirableRelease, Keys: s.keys, Args: args, Lease: server.Length, Stop: server.Over}
}

// discard releases ids that nobody has, or will have, in the background; uncertain
// says that a late request may still create them.
func (s *Expirable) discard(ids []string, uncertain bool) {
	s.all.Server.Go(func() {
		call := s.release(ids)
		if _, err := call.Run(context.Background()); err != nil || uncertain {
			s.reap(ids, err)
		}
	})
}

// reap has ids released again and again, for longer than any request can be in
// flight. failed is why their release was not answered; nil: it was.
func (s *Expirable) reap(ids []string, failed error) {
	orphans := &s.all.Server.Orphans
	orphans.Add(ids[0], 0, failed, func() {
		call := s.release(ids)
		call.Single = true
		_, err := call.Run(context.Background())
		orphans.Answered(ids[0], err)
	})
}
