package locktest

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch/internal/wire"
)

// A JavaWaiter is a waiter of Redisson, put into the queue by hand.
type JavaWaiter struct {
	w     *World
	name  string
	Owner string
}

// JavaWaiter puts a waiter of Redisson at the end of the queue.
func (w *World) JavaWaiter(name string, thread int, allowance time.Duration) *JavaWaiter {
	w.Helper()
	j := &JavaWaiter{w, name, fmt.Sprintf("0f8fad5b-d9cb-469f-a165-70867728950e:%d", thread)}
	queue, timeouts, _ := FairKeys(name)
	_, _ = w.Server.Push(queue, j.Owner)
	_, _ = w.Server.ZAdd(timeouts, float64(time.Now().Add(allowance).UnixMilli()), j.Owner)
	return j
}

// Take does what Redisson does when it is its turn, and says whether it was.
func (j *JavaWaiter) Take() bool {
	j.w.Helper()
	queue, timeouts, _ := FairKeys(j.name)
	ids := j.w.Queue(j.name)
	if j.w.Server.Exists(j.name) || len(ids) == 0 || ids[0] != j.Owner {
		return false
	}
	_, _ = j.w.Server.Lpop(queue)
	_, _ = j.w.Server.ZRem(timeouts, j.Owner)
	for _, id := range ids[1:] {
		score, _ := j.w.Server.ZScore(timeouts, id)
		_, _ = j.w.Server.ZAdd(timeouts, score-300000, id)
	}
	j.w.Server.HSet(j.name, j.Owner, "1")
	j.w.Server.SetTTL(j.name, 30*time.Second)
	return true
}

// Unlock does what Redisson does.
func (j *JavaWaiter) Unlock() {
	j.w.Server.Del(j.name)
	if ids := j.w.Queue(j.name); len(ids) > 0 {
		j.w.Server.Publish("redisson_lock__channel:{"+j.name+"}:"+ids[0], "0")
	}
}

// A Foreigner does to a read-write lock what Redisson's clients do.
type Foreigner struct {
	*World
	Rdb   *redis.Client
	name  string
	owner string
}

// Foreigner returns one that uses the read-write lock of that name as that owner.
func (w *World) Foreigner(name, owner string) *Foreigner {
	rdb := redis.NewClient(&redis.Options{
		Addr: "127.0.0.1:1", Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) { return w.Dial(ctx) }, DisableIdentity: true,
	})
	w.Cleanup(func() { _ = rdb.Close() })
	return &Foreigner{w, rdb, name, owner}
}

// foreignRead is a read acquisition: count up, and a key for the count.
const foreignRead = `
local mode = redis.call('hget', KEYS[1], 'mode')
if mode and mode ~= 'read' and redis.call('hexists', KEYS[1], ARGV[2] .. ':write') == 0 then
  return redis.call('pttl', KEYS[1])
end
if not mode then redis.call('hset', KEYS[1], 'mode', 'read') end
local n = redis.call('hincrby', KEYS[1], ARGV[2], 1)
redis.call('set', KEYS[2] .. ':' .. n, 1)
redis.call('pexpire', KEYS[2] .. ':' .. n, ARGV[1])
redis.call('pexpire', KEYS[1], math.max(redis.call('pttl', KEYS[1]), tonumber(ARGV[1])))
return -3`

// foreignUnread is a read release: count down, delete the highest key, then
// either keep the lock for the longest key of anybody, or delete it.
const foreignUnread = `
if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return -1 end
local n = redis.call('hincrby', KEYS[1], ARGV[1], -1)
if n == 0 then redis.call('hdel', KEYS[1], ARGV[1]) end
redis.call('del', ARGV[2] .. ':' .. ARGV[1] .. ':rwlock_timeout:' .. (n + 1))
if redis.call('hlen', KEYS[1]) > 1 then
  local most = -3
  for _, field in ipairs(redis.call('hkeys', KEYS[1])) do
    for i = tonumber(redis.call('hget', KEYS[1], field)) or 0, 1, -1 do
      most = math.max(most, redis.call('pttl', ARGV[2] .. ':' .. field .. ':rwlock_timeout:' .. i))
    end
  end
  if most > 0 then
    redis.call('pexpire', KEYS[1], most)
    return 0
  end
  if redis.call('hget', KEYS[1], 'mode') == 'write' then return 0 end
end
redis.call('del', KEYS[1])
redis.call('publish', KEYS[2], '0')
return 1`

func (f *Foreigner) Read(lease time.Duration) bool {
	f.Helper()
	prefix := wire.ReadTimeout(f.name, f.owner, 1)
	n, err := f.Rdb.Eval(bg, foreignRead, []string{f.name, prefix[:len(prefix)-2]}, lease.Milliseconds(), f.owner).Int()
	if err != nil {
		f.Fatal(err)
	}
	return n == -3
}

// Unread returns 1 if the lock is free, 0 if it is held, -1 if it was not ours.
func (f *Foreigner) Unread() int {
	f.Helper()
	n, err := f.Rdb.Eval(bg, foreignUnread, []string{f.name, wire.Prefix(wire.RWChannel, f.name)}, f.owner, "{"+f.name+"}").Int()
	if err != nil {
		f.Fatal(err)
	}
	return n
}

// Owners of Redisson.
const (
	JavaOwner  = "285475da-9152-4c83-822a-67ee2f116a79:52"
	JavaOwner2 = "285475da-9152-4c83-822a-67ee2f116a79:53"
)

// Owners as Redisson's clients name them, and one of ours.
const (
	JavaA = "0f8fad5b-d9cb-469f-a165-70867728950e"
	JavaB = "7c9e6679-7425-40de-944b-e07fc1f90ae7"
	OurC  = "2628bb85-29a0-8bdd-8b35-e7415bb697b1"
)
