package permit

import (
	"context"
	"math"
	"strconv"
	"time"

	"github.com/redlatch/redlatch/internal/callsite"
	"github.com/redlatch/redlatch/internal/claim"
	"github.com/redlatch/redlatch/internal/fact"
	"github.com/redlatch/redlatch/internal/handoff"
	"github.com/redlatch/redlatch/internal/lua"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/script"
	"github.com/redlatch/redlatch/internal/wire"
)

// Most is the largest number that Redisson can count to.
const Most = math.MaxInt32

// Counted is the name of a semaphore whose permits are only counted, for a client.
type Counted struct {
	Key string // in Redis

	all     *Semaphores
	permits int // gives one that has not been set up so many; 0: does not
	channel string
	keys    []string // of its scripts
}

// Counted returns the semaphore that has this name in Redis. An acquisition that
// finds that it has not been set up sets it up with so many permits, unless these
// are 0.
func (all *Semaphores) Counted(key string, permits int) Counted {
	return Counted{Key: key, all: all, permits: permits, channel: wire.Prefix(wire.SemaphoreChannel, key), keys: []string{key}}
}

// Name returns the semaphore's name, as its user gave it.
func (s *Counted) Name() string { return s.all.Server.Name(s.Key) }

// Acquire lines up for n permits, until a time if that is not zero. With once it
// does not wait for them. at is where they were asked for. It says whether they
// came without a request, from another goroutine of this process.
func (s *Counted) Acquire(ctx context.Context, n int, once bool, until time.Time, at callsite.Site) (passed bool, err error) {
	if s.all.Server.Closed() {
		return false, request.ErrClosed
	}
	if n == 0 {
		return false, nil
	}
	err = request.ContextError(ctx)
	if err == nil {
		q := s.all.counted.get(s)
		passed, err = q.acquire(ctx, countedWant{n: n, permits: s.permits}, once, until, at)
		s.all.counted.put(q)
	}
	if err == nil {
		return passed, nil
	}
	return false, s.all.Server.Public(handoff.GaveUp(err, fact.Busy{Name: s.Name(), Kind: claim.Semaphore}))
}

// Release gives n permits back. If it fails because ctx has ended, or for an
// outage, they are given back nevertheless.
func (s *Counted) Release(ctx context.Context, n int) error {
	q := s.all.counted.get(s)
	defer s.all.counted.put(q)
	_, err := q.release(ctx, n)
	return err
}

// Add adds n permits. Without a semaphore it makes one, if it is to.
func (s *Counted) Add(ctx context.Context, n int, makes bool) (done bool, err error) {
	always := "0"
	if makes {
		always = "1"
	}
	answer, err := s.change(ctx, lua.SemaphoreAdd, s.channel, strconv.Itoa(n), always)
	return answer == 1, err
}

// Set makes a semaphore of n permits, if there is none, for a time if that is not
// 0.
func (s *Counted) Set(ctx context.Context, n int, ttl time.Duration) (made bool, err error) {
	answer, err := s.change(ctx, lua.SemaphoreSet, s.channel, strconv.Itoa(n), wire.MillisUp(ttl))
	return answer == 1, err
}

// Drain takes all free permits.
func (s *Counted) Drain(ctx context.Context) (n int, err error) {
	answer, err := s.change(ctx, lua.SemaphoreDrain)
	return int(answer), err
}

// Delete deletes the semaphore.
func (s *Counted) Delete(ctx context.Context) (deleted bool, err error) {
	answer, err := s.change(ctx, lua.SemaphoreDelete)
	return answer == 1, err
}

// Lives says after how many ms the semaphore ends; "0": never. It says whether
// there is one.
func (s *Counted) Lives(ctx context.Context, ms string) (there bool, err error) {
	answer, err := s.change(ctx, lua.KeyExpire, ms, "string")
	return answer == 1, err
}

// Available asks how many permits are free.
func (s *Counted) Available(ctx context.Context) (int, error) {
	if s.all.Server.Left() {
		return 0, request.ErrClosed
	}
	call := s.all.Server.Question(lua.SemaphoreRead, s.keys)
	reply, err := call.Run(ctx)
	if err != nil {
		return 0, err
	}
	return request.Number(reply, s.Key, "semaphore")
}

// change sends a request on the session that these have for themselves.
func (s *Counted) change(ctx context.Context, script *script.Script, args ...string) (int64, error) {
	if s.all.Server.Left() {
		return 0, request.ErrClosed
	}
	session := wire.Session(s.Key, s.all.Client, "change")
	return s.all.Server.Sessions.Do(ctx, session, request.Count{Script: script, Keys: s.keys, Args: args, Acks: true})
}
