package redlatch

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/holdctx"
	"github.com/redlatch/redlatch/internal/lua"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/wire"
)

// What can be done with permits by their ids, wherever they were acquired.

// Release gives permits back by their ids, wherever they were acquired: all of
// them, or none, if one of them has been released or has expired; then it returns
// ErrNotHeld. A Permit of this process that has one of the ids ends before, as if
// by its own Release.
//
// Release works with a context that has ended, as Hold.Release does. It changes
// the semaphore once, whatever replies are lost. What is released while the answer to
// another Release is awaited goes with the next request, for up to 50 callers.
func (s *ExpirableSemaphore) Release(ctx context.Context, ids ...string) error {
	raw, err := s.identify(ctx, ids)
	if err != nil {
		return err
	}
	return s.c.server.Finish(ctx, s.c.cfg.WatchdogTimeout, func() error { return s.giveBack(ids, raw) })
}

func (s *ExpirableSemaphore) giveBack(ids, raw []string) error {
	ours := s.c.permits.of(s.name, raw...)
	if len(ours) > 0 {
		// They must end before anybody can get their places, but only if all are to
		// be released.
		left, err := s.left(context.Background(), raw)
		if err != nil {
			return err
		}
		if slices.Contains(left, gone) {
			return s.notHeld(ids)
		}
	}
	for _, p := range ours {
		p.end(holdctx.ErrReleased)
	}
	b := &giveBack{ids: raw, done: make(chan struct{})}
	s.c.givers.Add(s.name, b, s.sendBack)
	select {
	case <-b.done:
	case <-time.After(s.c.cfg.OutageTimeout + request.AttemptTimeout(s.c.cfg.WatchdogTimeout)):
		for _, p := range ours {
			s.owe([]string{p.id})
		}
		return request.ErrSessionBusy // and behind it many others: it is done when its turn comes
	}
	for _, p := range ours {
		if b.err == nil && !b.back {
			s.drop([]string{p.id}, p.suspect) // nobody has them any more
		} else if b.err != nil || p.suspect {
			s.owe([]string{p.id})
		}
	}
	if b.err == nil && !b.back {
		return s.notHeld(ids)
	}
	return b.err
}

// mostGathered are as many callers as there are bits in an answer that Lua can count to.
const mostGathered = 50

// A giveBack is permits that one caller gives back by their ids.
type giveBack struct {
	ids  []string
	done chan struct{} // closed when what follows is known
	back bool
	err  error
}

// sendBack gives permits back for several callers.
func (s *ExpirableSemaphore) sendBack(all []*giveBack) {
	for len(all) > 0 {
		args, n, ids := []string{s.channel}, 0, 0
		for _, b := range all {
			if ids += len(b.ids); ids > mostPermits {
				break
			}
			n++
			args = append(append(args, strconv.Itoa(len(b.ids))), b.ids...)
		}
		answer, err := s.session(context.Background(), lua.ExpirableGiveBack, s.keys, args...)
		for i, b := range all[:n] {
			b.back, b.err = answer&(1<<i) != 0, err
			close(b.done)
		}
		all = all[n:]
	}
}

func (s *ExpirableSemaphore) notHeld(ids []string) error {
	if len(ids) == 1 {
		return fmt.Errorf("%w: permit %s of semaphore %q has been released, has expired, or never was", ErrNotHeld, ids[0], s.name)
	}
	return fmt.Errorf("%w: of %d permits of semaphore %q at least one has been released, has expired, or never was; none was released", ErrNotHeld, len(ids), s.name)
}

// identify checks what methods that work on ids are given.
func (s *ExpirableSemaphore) identify(ctx context.Context, ids []string) ([]string, error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	if len(ids) == 0 || len(ids) > mostPermits {
		return nil, fmt.Errorf("redlatch: %d ids of permits; give 1 to %d", len(ids), mostPermits)
	}
	return rawIDs(ids)
}

// Extend raises the lease of a permit, wherever it was acquired, to d from now, if
// it is not longer already; it never shortens it. It returns ErrNotHeld if the
// permit has been released or has expired. One of this process is extended as by
// its own Extend.
func (s *ExpirableSemaphore) Extend(ctx context.Context, id string, d time.Duration) error {
	raw, err := s.identify(ctx, []string{id})
	if err != nil {
		return err
	}
	if ours := s.c.permits.of(s.name, raw...); len(ours) > 0 {
		return ours[0].extend(ctx, d)
	}
	if err := checkLease(d); err != nil {
		return err
	}
	live, _, err := s.raise(ctx, raw[0], (d + time.Millisecond - 1).Truncate(time.Millisecond))
	if err == nil && !live {
		err = s.notHeld([]string{id})
	}
	return err
}

// LeaseLeft returns for how long Redis keeps a permit unless somebody extends it,
// or -1 if for ever, as Redisson clients can acquire it. That is longer than its
// holder may trust it, by Config.MaxClockSkew if it is redlatch's. It returns
// ErrNotHeld if the permit has been released or has expired.
func (s *ExpirableSemaphore) LeaseLeft(ctx context.Context, id string) (time.Duration, error) {
	raw, err := s.identify(ctx, []string{id})
	if err != nil {
		return 0, err
	}
	left, err := s.left(ctx, raw)
	if err == nil && left[0] == gone {
		return 0, s.notHeld([]string{id})
	}
	if err != nil {
		return 0, err
	}
	return left[0], nil
}

// gone is what left returns of a permit that is not live.
const gone = -2 * time.Millisecond

// left returns for how long permits are given, -1 or gone.
func (s *ExpirableSemaphore) left(ctx context.Context, ids []string) ([]time.Duration, error) {
	o := s.c.question(lua.ExpirableLeft, s.keys[1])
	o.Args = ids
	reply, err := o.Run(ctx)
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
func (s *ExpirableSemaphore) raise(ctx context.Context, id string, d time.Duration) (live bool, sent time.Time, err error) {
	o := request.Call{Server: s.c.server, Script: lua.ExpirableRenew, Keys: s.keys[1:], Args: []string{id, s.c.permitMs(d)}, Lease: d, Stop: s.c.server.Done, Acks: s.c.server.Acks.Renews}
	reply, err := o.Run(ctx)
	if short := o.Doubt(err == nil && request.First(reply).Int == 1); short != nil {
		err = short
	}
	if err != nil {
		return false, o.Sent, err
	}
	switch r := request.First(reply); {
	case r.Kind == driver.ReplyInt:
		return r.Int == 1, o.Sent, nil
	case request.WrongType(r.Str):
		return false, o.Sent, nil
	default:
		return false, o.Sent, fmt.Errorf("redlatch: %w", driver.ServerError(r.Str, errors.New(r.Str)))
	}
}

// rawIDs reads ids as the API has them.
func rawIDs(ids []string) ([]string, error) {
	raw := make([]string, len(ids))
	for i, id := range ids {
		b, err := hex.DecodeString(id)
		if err != nil || len(b) != 16 {
			return nil, fmt.Errorf("redlatch: %q is not the id of a permit: that has 32 hexadecimal digits, see Permit.ID", id)
		}
		raw[i] = string(b)
	}
	return raw, nil
}
