package latch

import (
	"context"
	"strconv"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/callsite"
	"github.com/redlatch/redlatch/internal/claim"
	"github.com/redlatch/redlatch/internal/lua"
	"github.com/redlatch/redlatch/internal/poll"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/script"
	"github.com/redlatch/redlatch/internal/wire"
)

// A Latch is the name of one, for a client.
type Latch struct {
	Key string // in Redis

	server  *request.Server
	polls   *poll.Polls
	channel string
	id      string // the client's
}

// New returns the latch that has this name in Redis, for the client with an id
// whose callers wait in polls.
func New(server *request.Server, polls *poll.Polls, id, key string) Latch {
	return Latch{Key: key, server: server, polls: polls, channel: wire.LatchChannel(key), id: id}
}

// Name returns the latch's name, as its user gave it.
func (l *Latch) Name() string { return l.server.Name(l.Key) }

// Set sets the count to n, unless the latch is being counted down.
func (l *Latch) Set(ctx context.Context, n int) (set bool, err error) {
	answer, err := l.change(ctx, lua.LatchSet, strconv.Itoa(n), l.channel)
	return answer == 1, err
}

// Down counts down by one, and says whether the latch is still to be waited for:
// not if that, or one of those that went as one request with it, has opened it, or
// if it was not set, and nothing was counted.
func (l *Latch) Down(ctx context.Context) (closed bool, err error) {
	answer, err := l.change(ctx, lua.LatchDown, l.channel)
	return answer == 0, err
}

// Delete sets the count to 0, and says whether it was more.
func (l *Latch) Delete(ctx context.Context) (was bool, err error) {
	answer, err := l.change(ctx, lua.LatchDelete, l.channel)
	return answer == 1, err
}

// change sends a request that must not be executed twice.
func (l *Latch) change(ctx context.Context, s *script.Script, args ...string) (int64, error) {
	session := wire.Session(l.Key, l.id, "latch")
	return l.server.Sessions.Do(ctx, session, request.Count{Script: s, Keys: []string{l.Key}, Args: args, Adds: s == lua.LatchDown})
}

// Count asks how many count-downs are missing.
func (l *Latch) Count(ctx context.Context) (int, error) {
	call := l.server.Question(lua.LatchCount, []string{l.Key})
	reply, err := call.Run(ctx)
	if err != nil {
		return 0, err
	}
	return l.count(reply)
}

func (l *Latch) count(r driver.Reply) (int, error) {
	n, err := request.Number(r, l.Key, "latch")
	return max(n, 0), err
}

// Wait waits until the count is 0. at is where that was asked for.
func (l *Latch) Wait(ctx context.Context, at callsite.Site) error {
	return l.polls.Wait(ctx, "latch:"+l.Key, l.channel, poll.Question{
		Script: lua.LatchCount, Keys: []string{l.Key},
		Read: func(r driver.Reply) (bool, error) {
			n, err := l.count(r)
			return n == 0, err
		},
		About: claim.Claim{Name: l.Key, Kind: claim.Latch, Site: at},
	})
}
