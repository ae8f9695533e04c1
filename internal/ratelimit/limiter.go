package ratelimit

import (
	"context"
	"strconv"
	"time"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/fact"
	"github.com/redlatch/redlatch/internal/inspect"
	"github.com/redlatch/redlatch/internal/lua"
	"github.com/redlatch/redlatch/internal/ratequeue"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/script"
	"github.com/redlatch/redlatch/internal/wire"
)

// A Limiter is the name of one, for a client.
type Limiter struct {
	Key string // in Redis

	queues *ratequeue.Queues
	keys   []string // the configuration, the state that all share, that of this client, and how far either's records were added up
	id     string   // the client's
}

// New returns the limiter that has this name in Redis, for the client with an id
// whose callers stand in queues.
func New(queues *ratequeue.Queues, id, key string) Limiter {
	return Limiter{Key: key, queues: queues, keys: wire.RateKeys(key, id), id: id}
}

// Name returns the limiter's name, as its user gave it.
func (l *Limiter) Name() string { return l.queues.Server.Name(l.Key) }

// TrySet gives the limiter a rate, unless it has one. How its request fares is
// noted for others that wait for it, unless asks is nil.
func (l *Limiter) TrySet(ctx context.Context, r inspect.Rate, asks *request.Refusals) (set bool, err error) {
	answer, err := l.change(ctx, request.Count{Script: lua.RateLimiterTrySet, Keys: l.keys, Args: rateArgs(r), Fleeting: true, Refusals: asks})
	return answer == 1, err
}

// Set gives the limiter a rate, and it begins anew.
func (l *Limiter) Set(ctx context.Context, r inspect.Rate) error { return l.replace(ctx, r, "0") }

// Update gives the limiter another rate if it has one, and what was taken still
// counts.
func (l *Limiter) Update(ctx context.Context, r inspect.Rate) error { return l.replace(ctx, r, "1") }

// replace gives the limiter another rate. The script can update and keep apart, as
// Redisson can.
func (l *Limiter) replace(ctx context.Context, r inspect.Rate, keep string) error {
	return l.rated(l.change(ctx, request.Count{Script: lua.RateLimiterSet, Keys: l.keys, Args: append(rateArgs(r), keep, keep)}))
}

// rateArgs returns a rate as scripts have it.
func rateArgs(r inspect.Rate) []string {
	return []string{strconv.Itoa(r.Permits), wire.MillisUp(r.Interval), flag(r.PerClient), wire.MillisUp(r.KeepAlive)}
}

// flag returns a yes or no as scripts have it.
func flag(yes bool) string {
	if yes {
		return "1"
	}
	return "0"
}

// Lives says after how many ms the limiter ends; "0": never, but for what clients
// have taken for themselves. It says whether there is one.
func (l *Limiter) Lives(ctx context.Context, ms string) (there bool, err error) {
	keys := l.keys[:5]
	if ms == "0" {
		keys = l.keys[:3]
	}
	answer, err := l.change(ctx, request.Count{Script: lua.KeyExpire, Keys: keys, Args: []string{ms, "hash"}})
	return answer == 1, err
}

// Take lines up for permits, until a time if that is not zero.
func (l *Limiter) Take(ctx context.Context, want ratequeue.Want, until time.Time) error {
	return l.queues.Take(ctx, l.Key, l.keys, want, until)
}

// Release gives n permits back.
func (l *Limiter) Release(ctx context.Context, n int) error {
	return l.rated(l.change(ctx, request.Count{Script: lua.RateLimiterRelease, Keys: l.keys, Args: []string{strconv.Itoa(n)}}))
}

// Delete deletes the limiter, but for what other clients have taken for
// themselves.
func (l *Limiter) Delete(ctx context.Context) (deleted bool, err error) {
	answer, err := l.change(ctx, request.Count{Script: lua.RateLimiterDelete, Keys: l.keys})
	return answer == 1, err
}

// change sends what changes something.
func (l *Limiter) change(ctx context.Context, x request.Count) (int64, error) {
	answer, err := l.queues.Server.Sessions.Do(ctx, wire.Session(l.Key, l.id, "rate"), x)
	if err == nil {
		l.queues.Changed(l.Key)
	}
	return answer, err
}

// rated returns the error of a change that is refused if the limiter has no rate.
func (l *Limiter) rated(answer int64, err error) error {
	if err == nil && answer == 0 {
		err = fact.ErrUninitialized
	}
	return err
}

// Available asks how many permits could be taken now.
func (l *Limiter) Available(ctx context.Context) (int, error) {
	reply, err := l.ask(ctx, lua.RateLimiterAvailable, l.keys)
	switch {
	case err != nil:
		return 0, err
	case reply.Kind != driver.ReplyInt:
		return 0, fact.ErrUninitialized
	}
	return int(reply.Int), nil
}

// Rate asks for the limiter's rate.
func (l *Limiter) Rate(ctx context.Context) (inspect.Rate, error) {
	reply, err := l.ask(ctx, lua.RateLimiterConfig, l.keys[:1])
	if err != nil {
		return inspect.Rate{}, err
	}
	rate, set, err := inspect.RateOf(l.Name(), reply.List)
	if err == nil && !set {
		err = fact.ErrUninitialized
	}
	return rate, err
}

// ask sends what changes nothing.
func (l *Limiter) ask(ctx context.Context, script *script.Script, keys []string) (driver.Reply, error) {
	call := l.queues.Server.Question(script, keys)
	return call.Run(ctx)
}
