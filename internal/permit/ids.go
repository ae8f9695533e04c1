package permit

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redlatch/redlatch/internal/holdctx"
	"github.com/redlatch/redlatch/internal/lua"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/wire"
)

// What can be done with permits by their ids, wherever they were acquired. An id
// is its 16 bytes here, as it stands in Redis.

// Live returns the live permit of this client that has an id, or nil.
func (s *Expirable) Live(id string) *Permit {
	if ours := s.all.live.of(s.Key, id); len(ours) > 0 {
		return ours[0]
	}
	return nil
}

// Release gives permits back, all of them or none. Those of this client end
// before. ctx bounds only the waiting.
func (s *Expirable) Release(ctx context.Context, ids []string) error {
	return s.all.Server.Finish(ctx, s.all.Server.Length, func() error { return s.giveBack(ids) })
}

func (s *Expirable) giveBack(ids []string) error {
	server := s.all.Server
	ours := s.all.live.of(s.Key, ids...)
	if len(ours) > 0 {
		// They must end before anybody can get their places, but only if all are to
		// be released.
		left, err := s.left(context.Background(), ids)
		if err != nil {
			return err
		}
		if slices.Contains(left, gone) {
			return notHeld(s.Name(), ids...)
		}
	}
	for _, p := range ours {
		if p.stop(holdctx.ErrReleased, "") {
			p.state.Tell(holdctx.EndReleased, nil)
		}
	}
	b := &giveBack{ids: ids, done: make(chan struct{})}
	s.all.givers.Add(s.Key, b, s.sendBack)
	select {
	case <-b.done:
	case <-time.After(server.Outage + request.AttemptTimeout(server.Length)):
		for _, p := range ours {
			s.reap([]string{p.id}, request.ErrSessionBusy)
		}
		return request.ErrSessionBusy // and behind it many others: it is done when its turn comes
	}
	for _, p := range ours {
		if b.err == nil && !b.back {
			s.discard([]string{p.id}, p.uncertain) // nobody has them any more
		} else if b.err != nil || p.uncertain {
			s.reap([]string{p.id}, b.err)
		}
	}
	if b.err == nil && !b.back {
		return notHeld(s.Name(), ids...)
	}
	return b.err
}

// A giveBack is permits that one caller gives back by their ids.
type giveBack struct {
	ids  []string
	done chan struct{} // closed when what follows is known
	back bool
	err  error
}

// sendBack gives permits back for several callers.
func (s *Expirable) sendBack(callers []*giveBack) {
	for len(callers) > 0 {
		args, n, ids := []string{s.channel}, 0, 0
		for _, b := range callers {
			if ids += len(b.ids); ids > MostAtOnce {
				break
			}
			n++
			args = append(append(args, strconv.Itoa(len(b.ids))), b.ids...)
		}
		answer, err := s.count(context.Background(), lua.ExpirableGiveBack, s.keys, args...)
		for i, b := range callers[:n] {
			b.back, b.err = answer&(1<<i) != 0, err
			close(b.done)
		}
		callers = callers[n:]
	}
}

// Extend raises the lease of a permit to d from now.
func (s *Expirable) Extend(ctx context.Context, id string, d time.Duration) error {
	live, _, err := s.raise(ctx, id, d)
	if err == nil && !live {
		err = notHeld(s.Name(), id)
	}
	return err
}

// Left returns for how long a permit is given, or -1 if for ever.
func (s *Expirable) Left(ctx context.Context, id string) (time.Duration, error) {
	left, err := s.left(ctx, []string{id})
	if err == nil && left[0] == gone {
		err = notHeld(s.Name(), id)
	}
	if err != nil {
		return 0, err
	}
	return left[0], nil
}

// notHeld says that at least one of these ids is not that of a live permit of the
// semaphore.
func notHeld(name string, ids ...string) error {
	if len(ids) == 1 {
		return fmt.Errorf("%w: permit %x of semaphore %q has been released, has expired, or never was", holdctx.ErrNotHeld, ids[0], name)
	}
	return fmt.Errorf("%w: of %d permits of semaphore %q at least one has been released, has expired, or never was; none was released", holdctx.ErrNotHeld, len(ids), name)
}

// gone is what left returns of a permit that is not live.
const gone = -2 * time.Millisecond

// left returns for how long permits are given, -1 or gone.
func (s *Expirable) left(ctx context.Context, ids []string) ([]time.Duration, error) {
	call := s.all.Server.Question(lua.ExpirableLeft, s.keys[1:])
	call.Args = ids
	reply, err := call.Run(ctx)
	if err != nil {
		return nil, err
	}
	if len(reply.List) != len(ids) {
		return nil, request.Unexpected(reply, lua.ExpirableLeft)
	}
	left := make([]time.Duration, len(ids))
	for i, r := range reply.List {
		if left[i] = wire.FromMillis(r.Int); r.Int == -1 {
			left[i] = -1
		}
	}
	return left, nil
}

// raise raises the time of a permit to d from now, and says whether it is live,
// and when the request was sent that learnt it.
func (s *Expirable) raise(ctx context.Context, id string, d time.Duration) (live bool, sent time.Time, err error) {
	server := s.all.Server
	call := request.Call{
		Server: server, Script: lua.ExpirableRenew, Keys: s.keys[1:], Args: []string{id, s.all.leaseMs(d)},
		Lease: d, Stop: server.Quit, Acks: server.Acks.Renews, Key: s.Key,
	}
	live, err = call.Extend(ctx)
	return live, call.Sent, err
}
