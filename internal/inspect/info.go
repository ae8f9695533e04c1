package inspect

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/claim"
	"github.com/redlatch/redlatch/internal/lua"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/wire"
)

// The kinds of what can be inspected. What they are called, users read.
const (
	Lock        = claim.Lock
	Fenced      = claim.Fenced
	Fair        = claim.Fair
	ReadWrite   = claim.ReadWrite
	Group       = claim.Group
	Semaphore   = claim.Semaphore
	Expirable   = claim.Expirable
	Latch       = claim.Latch
	RateLimiter = claim.RateLimiter
	Barrier     = claim.Barrier
	Counter     = "semaphore or latch"
)

// Info is what is stored of a lock or synchronizer: package admin says what its
// fields mean, and those of Holder, Waiter and Rate.
type Info struct {
	Name         string
	Kind         string
	Holders      []Holder
	TTL          time.Duration
	Queue        []Waiter
	Token        int64
	Count, Total int
	Rate         Rate
	Generation   string
}

// Held says whether anybody holds it.
func (i Info) Held() bool { return len(i.Holders) > 0 }

// A Holder is one owner.
type Holder struct {
	Owner    string
	Client   string
	Count    int
	Redlatch bool
	TTL      time.Duration
	Mode     string
	Value    string
}

// A Waiter waits in a queue that is stored.
type Waiter struct {
	Owner    string
	Client   string
	Redlatch bool
	Until    time.Time
}

// A Rate is how many permits a rate limiter gives.
type Rate struct {
	Permits   int
	Interval  time.Duration
	PerClient bool
	KeepAlive time.Duration
}

func holderOf(owner string, count int, ttl time.Duration) Holder {
	h := Holder{Owner: owner, Count: count, TTL: ttl}
	h.Client, h.Redlatch = wire.ClientOf(owner)
	return h
}

// stored is what the server has of a lock.
type stored struct {
	name    string
	ttl     time.Duration // 0: no such key, -1: for ever
	now     int64         // the server's clock, in ms
	token   int64
	fields  map[string]string
	queue   []string
	waiting map[string]int64 // until when, in ms, by owner
}

func parseStored(name string, r driver.Reply) (*stored, error) {
	s := &stored{name: name, fields: map[string]string{}, waiting: map[string]int64{}}
	list := r.List
	next := func(n int64) []driver.Reply {
		part := list[:min(max(n, 0), int64(len(list)))]
		list = list[len(part):]
		return part
	}
	head := next(4)
	if len(head) < 4 {
		return nil, request.Unexpected(r, lua.LockInfo)
	}
	s.ttl, s.now = lasting(head[0].Int), head[1].Int
	if text := head[2].Str; text != "" {
		token, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, notALock("the fencing token of %s is %s", wire.Quote(name), wire.Quote(text))
		}
		s.token = token
	}
	fields := next(head[3].Int)
	count := next(1)
	if int64(len(fields)) != head[3].Int || len(fields)%2 != 0 || len(count) != 1 {
		return nil, request.Unexpected(r, lua.LockInfo)
	}
	for i := 0; i < len(fields); i += 2 {
		s.fields[fields[i].Str] = fields[i+1].Str
	}
	for _, owner := range next(count[0].Int) {
		s.queue = append(s.queue, owner.Str)
	}
	if int64(len(s.queue)) != count[0].Int || len(list)%2 != 0 {
		return nil, request.Unexpected(r, lua.LockInfo)
	}
	for i := 0; i < len(list); i += 2 {
		if ms, ok := wire.StoredMillis(list[i+1].Str); ok {
			s.waiting[list[i].Str] = ms
		}
	}
	return s, nil
}

// lasting returns a TTL in ms as Info has it.
func lasting(ms int64) time.Duration {
	switch {
	case ms == -1:
		return -1
	case ms < 0:
		return 0
	}
	return wire.FromMillis(ms)
}

// Longer returns the longer of two such TTLs.
func Longer(x, y time.Duration) time.Duration {
	if x < 0 || y < 0 {
		return -1
	}
	return max(x, y)
}

// guess says what kind of lock this looks like. A fair lock for which nobody
// queues is stored as a plain one is.
func (s *stored) guess() string {
	if mode := s.fields[wire.Mode]; mode == wire.ModeRead || mode == wire.ModeWrite {
		return ReadWrite
	}
	for field := range s.fields {
		if strings.HasSuffix(field, wire.GroupExpiry) {
			return Group
		}
	}
	switch {
	case len(s.queue) > 0:
		return Fair
	case s.token > 0:
		return Fenced
	}
	return Lock
}

// info reads what is stored as a lock of this kind. It fails if it is another.
// The TTLs of readers are not in it yet.
func (s *stored) info(kind string) (info Info, err error) {
	if s.isLimiter() {
		return Info{}, notALock("key %s has fields of a rate limiter, and is not a lock", wire.Quote(s.name))
	}
	info = Info{Name: s.name, Kind: kind, TTL: s.ttl, Token: s.token}
	switch kind {
	case ReadWrite:
		info.Holders, err = s.readersAndWriter()
	case Group:
		info.Holders, err = s.valueHolders()
	default:
		info.Holders, err = s.owners()
	}
	if err != nil {
		return Info{}, err
	}
	// Redisson's owners and ours have this form. Without it this is another program's
	// hash, which nobody may release.
	for _, h := range info.Holders {
		if h.Client == "" {
			return Info{}, notALock("key %s is a hash but not a lock: %s is no owner", wire.Quote(s.name), wire.Quote(h.Owner))
		}
	}
	if kind == Fair {
		for _, owner := range s.queue {
			w := Waiter{Owner: owner}
			w.Client, w.Redlatch = wire.ClientOf(owner)
			if ms, ok := s.waiting[owner]; ok {
				w.Until = time.UnixMilli(ms)
			}
			info.Queue = append(info.Queue, w)
		}
	}
	return info, nil
}

// owners are the fields of a lock that is exclusive: one, or none.
func (s *stored) owners() (holders []Holder, err error) {
	for owner, text := range s.fields {
		count, err := strconv.Atoi(text)
		if err != nil {
			return nil, s.not("lock", owner, text)
		}
		holders = append(holders, holderOf(owner, count, s.ttl))
	}
	if len(holders) > 1 {
		return nil, notALock("key %s is a hash but not a lock: it has %d fields", wire.Quote(s.name), len(holders))
	}
	return holders, nil
}

// mostReads is more than any owners read at a time: what is greater is no count.
const mostReads = 10000

// readersAndWriter are the fields of a read-write lock; the writer comes first.
func (s *stored) readersAndWriter() (holders []Holder, err error) {
	mode := s.fields[wire.Mode]
	if len(s.fields) > 0 && mode != wire.ModeRead && mode != wire.ModeWrite {
		return nil, notALock("key %s is a hash but not a read-write lock: it has no mode", wire.Quote(s.name))
	}
	all := 0
	for owner, text := range s.fields {
		if owner == wire.Mode {
			continue
		}
		count, err := strconv.Atoi(text)
		if err != nil || count > mostReads {
			return nil, s.not("read-write lock", owner, text)
		}
		if all += max(count, 0); all > mostReads {
			return nil, notALock("key %s is a hash but not a read-write lock: it has more holds than that", wire.Quote(s.name))
		}
		h := holderOf(strings.TrimSuffix(owner, wire.WriteField("")), count, s.ttl)
		h.Mode = wire.ModeRead
		if wire.Writes(owner) {
			h.Mode = wire.ModeWrite
		}
		holders = append(holders, h)
	}
	slices.SortFunc(holders, func(x, y Holder) int {
		return cmp.Or(-cmp.Compare(x.Mode, y.Mode), cmp.Compare(x.Owner, y.Owner))
	})
	return holders, nil
}

// valueHolders are the values of a group that are locked: those whose time is
// over are free, although they stand there.
func (s *stored) valueHolders() (holders []Holder, err error) {
	for value, owner := range s.fields {
		if strings.Contains(value, ":") {
			continue // it belongs to one without
		}
		expiry, entered := wire.GroupFields(value, owner)
		ms, ok := wire.StoredMillis(s.fields[expiry])
		if !ok {
			return nil, s.not("group of locks", expiry, s.fields[expiry])
		}
		count, err := strconv.Atoi(s.fields[entered])
		if err != nil {
			return nil, s.not("group of locks", entered, s.fields[entered])
		}
		if ms > s.now {
			left := wire.FromMillis(ms - s.now)
			if s.ttl >= 0 {
				left = min(left, s.ttl)
			}
			h := holderOf(owner, count, left)
			h.Value = value
			holders = append(holders, h)
		}
	}
	slices.SortFunc(holders, func(x, y Holder) int { return cmp.Compare(x.Value, y.Value) })
	return holders, nil
}

// not says that a hash is not what it was read as, by one of its fields.
func (s *stored) not(what, field, text string) error {
	return notALock("key %s is a hash but not a %s: field %s has value %s", wire.Quote(s.name), what, wire.Quote(field), wire.Quote(text))
}

// notALock says that the key under a lock's name is something else.
func notALock(format string, args ...any) error {
	return &driver.RunError{Outcome: driver.Refused, Code: "WRONGTYPE", Err: fmt.Errorf(format, args...)}
}

// looksLikeLock says whether a hash that somebody named is a lock.
func (i Info) looksLikeLock() bool {
	if !i.Held() || i.TTL <= 0 {
		return false
	}
	for _, h := range i.Holders {
		if h.Count < 1 {
			return false
		}
	}
	return true
}
