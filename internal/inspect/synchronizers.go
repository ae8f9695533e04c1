package inspect

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/lua"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/wire"
)

// What is stored of a synchronizer, read as what it is. Each is read by one
// script; to find out which one it is may take others before.

// Info reads what has this name, whatever it is: what stands under the name
// itself, or else a barrier.
func (x *Inspector) Info(ctx context.Context, name string) (Info, error) {
	reply, err := x.askLock(ctx, name, mostShown)
	if isWrongType(err) {
		info, _, other := x.numberInfo(ctx, name, mostShown)
		if isWrongType(other) {
			return Info{}, err // the first says more
		}
		return info, other
	}
	if err != nil {
		return Info{}, err
	}
	info, err := x.hashInfo(ctx, name, reply)
	if err == nil && info.TTL == 0 && len(info.Queue) == 0 {
		if barrier, is, err := x.barrierInfo(ctx, name); is || err != nil {
			return barrier, err
		}
	}
	return info, err
}

func isWrongType(err error) bool {
	var refused *driver.RunError
	return errors.As(err, &refused) && refused.Code == "WRONGTYPE"
}

// hashInfo reads a lock or a rate limiter.
func (x *Inspector) hashInfo(ctx context.Context, name string, reply driver.Reply) (Info, error) {
	s, err := parseStored(name, reply)
	if err != nil {
		return Info{}, err
	}
	if s.isLimiter() {
		if info, is, err := x.limiterInfo(ctx, name); is || err != nil {
			return info, err
		}
	}
	return x.lockInfo(ctx, s, s.guess())
}

// isLimiter says whether a hash has fields of a rate limiter, and no others. It
// may be one although some are missing: it is so to whoever sets its rate.
func (s *stored) isLimiter() bool {
	n := 0
	for field := range s.fields {
		switch field {
		case wire.RateField, wire.IntervalField, wire.RateTypeField:
			n++
		case wire.KeepAliveField:
		default:
			return false
		}
	}
	return n > 0
}

// limiterInfo reads a rate limiter, and says whether it is one.
func (x *Inspector) limiterInfo(ctx context.Context, name string) (info Info, is bool, err error) {
	call := x.question(lua.RateLimiterInfo, wire.RateKeys(name, x.ID)...)
	reply, err := call.Run(ctx)
	if err != nil || len(reply.List) != 6 {
		return Info{}, false, err
	}
	rate, is, err := RateOf(name, reply.List[1:5])
	if err != nil || !is {
		return Info{}, false, err
	}
	return Info{
		Name: name, Kind: RateLimiter, TTL: lasting(reply.List[0].Int),
		Count: int(reply.List[5].Int), Total: rate.Permits, Rate: rate,
	}, true, nil
}

// numberInfo reads a semaphore or a latch, and says whether it is stored as one.
// One with more permits than most is neither.
func (x *Inspector) numberInfo(ctx context.Context, name string, most int) (info Info, is bool, err error) {
	call := x.question(lua.SemaphoreInfo, name, wire.Suffix(name, wire.PermitTimeout))
	call.Args = []string{wire.Prefix(wire.SemaphoreChannel, name), wire.LatchChannel(name), strconv.Itoa(most)}
	reply, err := call.Run(ctx)
	if err != nil {
		return Info{}, false, err
	}
	r := reply.List
	if len(r) < 5 || r[4].Int < 0 || int64(len(r)-5) < r[4].Int || (int64(len(r)-5)-r[4].Int)%2 != 0 {
		return Info{}, false, request.Unexpected(reply, lua.SemaphoreInfo)
	}
	info = Info{Name: name, Kind: Counter, TTL: lasting(r[0].Int)}
	if info.TTL == 0 { // gone meanwhile
		return Info{Name: name, Kind: Lock}, false, nil
	}
	if info.Count, err = strconv.Atoi(r[1].Str); err != nil {
		return Info{}, false, notALock("key %s is a string but not a number", wire.Quote(name))
	}
	over, given := r[5:5+r[4].Int], r[5+r[4].Int:]
	if info.Holders, is = permitsOf(over, given); is {
		info.Kind = Expirable
		info.Count += len(over)
		info.Total = info.Count + len(info.Holders)
		return info, true, nil
	}
	switch {
	// A latch ends at 0 and has no TTL.
	case info.Count < 0, info.TTL > 0, r[2].Int > 0 && r[3].Int == 0:
		info.Kind = Semaphore
	case r[3].Int > 0 && r[2].Int == 0:
		info.Kind = Latch
	}
	return info, true, nil
}

// permitsOf reads the permits of a semaphore that are given: the ids of those
// whose time is over, and those of the others with the ms that are left. It says
// whether they are permits.
func permitsOf(over, given []driver.Reply) (holders []Holder, are bool) {
	for _, r := range over {
		if _, ok := permitName(r.Str); !ok {
			return nil, false
		}
	}
	for i := 0; i < len(given); i += 2 {
		id, ok := permitName(given[i].Str)
		if !ok {
			return nil, false
		}
		holders = append(holders, Holder{Owner: id, Count: 1, TTL: lasting(given[i+1].Int)})
	}
	return holders, len(over)+len(given) > 0
}

// permitName returns the id of a permit as the API has it: Redisson before 3.17
// stored it so.
func permitName(stored string) (id string, ok bool) {
	switch len(stored) {
	case 16:
		return hex.EncodeToString([]byte(stored)), true
	case 32:
		_, err := hex.DecodeString(stored)
		return stored, err == nil
	}
	return "", false
}

// barrierInfo reads a barrier, and says whether there is one.
func (x *Inspector) barrierInfo(ctx context.Context, name string) (info Info, is bool, err error) {
	generation := ""
	for range 100 { // so often another one may begin before we have asked about it
		call := x.question(lua.BarrierInfo, wire.BarrierKeys(name, generation)[:3]...)
		call.Args = []string{generation}
		reply, err := call.Run(ctx)
		r := reply.List
		if err != nil || len(r) == 0 {
			return Info{}, false, err
		}
		if len(r) == 3 {
			generation = r[1].Str
			continue
		}
		if len(r) < 4 || r[3].Int < 0 || int64(len(r)-4) < r[3].Int || r[3].Int%2 != 0 || (int64(len(r)-4)-r[3].Int)%2 != 0 {
			return Info{}, false, request.Unexpected(reply, lua.BarrierInfo)
		}
		info = Info{Name: name, Kind: Barrier, TTL: lasting(r[0].Int), Generation: generation}
		if info.Total, err = strconv.Atoi(r[2].Str); err != nil {
			return Info{}, false, notALock("barrier %s is of %s parties", wire.Quote(name), wire.Quote(r[2].Str))
		}
		info.Queue = arrived(r[4:4+r[3].Int], r[4+r[3].Int:])
		info.Count = len(info.Queue)
		return info, true, nil
	}
	return Info{}, false, fmt.Errorf("redlatch: the generations of barrier %s change too fast to look at one", wire.Quote(name))
}

// arrived returns who has arrived in a generation, in order: those to whom the
// record gives an index, which is how many were still to come.
func arrived(record, alive []driver.Reply) (queue []Waiter) {
	until := map[string]time.Time{}
	for i := 0; i < len(alive); i += 2 {
		if ms, ok := wire.StoredMillis(alive[i+1].Str); ok {
			until[alive[i].Str] = time.UnixMilli(ms)
		}
	}
	index := map[string]int{}
	for i := 0; i < len(record); i += 2 {
		owner := record[i].Str
		w := Waiter{Owner: owner}
		w.Client, w.Redlatch = wire.ClientOf(owner)
		n, err := strconv.Atoi(record[i+1].Str)
		if err != nil || w.Client == "" {
			continue // gone, or no caller
		}
		w.Until, index[owner] = until[w.Client], n
		queue = append(queue, w)
	}
	slices.SortFunc(queue, func(x, y Waiter) int { return cmp.Compare(index[y.Owner], index[x.Owner]) })
	return queue
}

// sideWalks go over side keys of objects whose names match the pattern. What has a
// brace in its name has no others around it, so "x" and "{x}" have the same side
// keys, of which names returns both: only "*" matches the two.
func sideWalks(kind, prefix, pattern, suffix string, names func(key string) []string, look func(ctx context.Context, name string) (Info, bool, error)) []walk {
	over := func(open, end string) walk {
		before, after := prefix+open, end+suffix
		return walk{kind, before + pattern + after, func(ctx context.Context, key string) (Info, bool, error) {
			for _, name := range names(key) {
				if pattern != "*" && before+name+after != key {
					continue
				}
				if info, is, err := look(ctx, name); is || err != nil && !isWrongType(err) {
					return info, is, err
				}
			}
			return Info{}, false, nil
		}}
	}
	bare, braced := over("", ""), over("{", "}")
	switch {
	case pattern == "*" || strings.Contains(pattern, "{"):
		return []walk{bare}
	case strings.ContainsAny(pattern, `*?[`):
		return []walk{braced, bare}
	}
	return []walk{braced}
}

// RateOf reads a configuration: rate, interval, type and keep-alive time.
func RateOf(name string, list []driver.Reply) (r Rate, set bool, err error) {
	if len(list) != 4 || list[0].Kind != driver.ReplyString || list[1].Kind != driver.ReplyString || list[2].Kind != driver.ReplyString {
		return Rate{}, false, nil
	}
	var n [4]int64
	for i, r := range list {
		if r.Kind != driver.ReplyString {
			continue // Redisson before 3.38 knows no keep-alive
		}
		var ok bool
		if n[i], ok = wire.StoredMillis(r.Str); !ok {
			return Rate{}, false, notALock("rate limiter %s is configured with %s, which is no number", wire.Quote(name), wire.Quote(r.Str))
		}
	}
	return Rate{Permits: int(n[0]), Interval: wire.FromMillis(n[1]), PerClient: n[2] == 1, KeepAlive: wire.FromMillis(n[3])}, true, nil
}
