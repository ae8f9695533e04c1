package term

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/wire"
)

// Outranked says whether nobody has the lock for himself, the modes being those in
// which what has its name is held: an owner that reads under its own write is a
// writer.
func (l *Lock) Outranked(modes []string) bool {
	return l.Kind.Under != "" && slices.Contains(modes, l.Kind.Under)
}

// While a slot of a cluster moves, a lock may be at the one node, and what keeps
// its readers alive at the other. The server finds that out, and refuses the
// request for the time being, if both are in KEYS. There they are in requests of
// owners that read already. For all others it is usual that there is no such key,
// and they would be refused for as long as the slot moves.

// keysLocked returns the keys of a request that raises the lease of what t holds.
func (t *nest) keysLocked() []string {
	if !t.proves {
		return t.Lock.alone[:]
	}
	return []string{t.Lock.Key, wire.ReadTimeout(t.Lock.Key, t.ID, 1)}
}

// left returns what a release has answered. If that has not seen what keeps others
// alive who read, it was the owner's own that it released, and the server is asked
// about the others: once, and if it does not know, in the background. If it never
// says, the lock lasts for its TTL.
func (l *Lock) left(ctx context.Context, reply driver.Reply) driver.Reply {
	if reply.Kind != driver.ReplyList {
		return reply
	}
	call := l.asking(reply.List)
	call.Single = true
	answer, err := call.Run(ctx)
	if err == nil && answer.Kind == driver.ReplyInt {
		return driver.Reply{Kind: driver.ReplyInt, Int: cmp.Or(answer.Int, -1)}
	}
	l.Env.Server.Go(func() {
		const most = 10 // others come, and die
		for n := 0; n < most && reply.Kind == driver.ReplyList; n++ {
			call := l.asking(reply.List)
			reply, _ = call.Run(context.Background())
		}
	})
	return driver.Reply{Kind: driver.ReplyInt, Int: -1}
}

// asking prepares the release of what nobody holds any more, if that is true of
// what these keys kept alive.
func (l *Lock) asking(proofs []driver.Reply) request.Call {
	call := l.releasing("")
	call.Stop, call.Keys = l.Env.Server.Over, []string{l.Key}
	for _, key := range proofs {
		call.Keys = append(call.Keys, key.Str)
	}
	return call
}

// writeInRead refuses what could never end.
func writeInRead(name string) error {
	return fmt.Errorf("%w: read-write lock %q is already held here to read, and a writer waits until nobody reads, so this would wait for itself; release the read hold first, or acquire the lock to write in the first place", ErrReentry, name)
}
