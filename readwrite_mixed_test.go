package redlatch_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/wire"
)

// A foreigner does to a read-write lock what Redisson's clients do.
type foreigner struct {
	*world
	rdb   *redis.Client
	name  string
	owner string
}

func (w *world) foreigner(name, owner string) *foreigner {
	rdb := redis.NewClient(&redis.Options{
		Addr: "127.0.0.1:1", Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) { return w.dial(ctx) }, DisableIdentity: true,
	})
	w.Cleanup(func() { _ = rdb.Close() })
	return &foreigner{w, rdb, name, owner}
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

func (f *foreigner) read(lease time.Duration) bool {
	f.Helper()
	prefix := wire.ReadTimeout(f.name, f.owner, 1)
	n, err := f.rdb.Eval(bg, foreignRead, []string{f.name, prefix[:len(prefix)-2]}, lease.Milliseconds(), f.owner).Int()
	if err != nil {
		f.Fatal(err)
	}
	return n == -3
}

// unread returns 1 if the lock is free, 0 if it is held, -1 if it was not ours.
func (f *foreigner) unread() int {
	f.Helper()
	n, err := f.rdb.Eval(bg, foreignUnread, []string{f.name, wire.Prefix(wire.RWChannel, f.name)}, f.owner, "{"+f.name+"}").Int()
	if err != nil {
		f.Fatal(err)
	}
	return n
}

const (
	java  = "285475da-9152-4c83-822a-67ee2f116a79:52"
	java2 = "285475da-9152-4c83-822a-67ee2f116a79:53"
)

// Redisson takes the lock away when it finds no live numbered key of anybody.
func TestAForeignReadUnlockKeepsTheLockForOurReaders(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c := w.client(redlatch.Config{})
		rw := c.ReadWriteLock("orders")
		f := w.foreigner("orders", java)
		a, b := w.acquire(rw.Read(), bg), w.acquire(rw.Read(), bg)
		if !f.read(30*time.Second) || !f.read(time.Hour) {
			t.Fatal("no place beside our readers")
		}
		w.release(a) // the first of ours
		for range 2 {
			if f.unread() != 0 {
				t.Fatal("the foreign release freed the lock")
			}
		}
		w.wantFields("ours alone", "orders", map[string]string{"mode": "read", b.Owner(): "1"})
		if ttl := w.server.TTL("orders"); time.Now().Add(ttl).Before(b.Expires()) {
			t.Errorf("the lock lives for %v, our hold is trusted for %v", ttl, time.Until(b.Expires()))
		}
		for range 10 {
			time.Sleep(15 * time.Second)
			f.read(time.Second)
			if f.unread() != 0 || b.Err() != nil {
				t.Fatal("the lock was taken from us", b.Err())
			}
		}
		w.release(b)
		w.wantNoKeys()
	})
}

func TestOurReleaseKeepsTheLockForForeignReaders(t *testing.T) {
	inFakeTime(t, func(w *world) {
		rw := w.client(redlatch.Config{}).ReadWriteLock("orders")
		f, g := w.foreigner("orders", java), w.foreigner("orders", java2)
		f.read(20 * time.Second)
		f.read(50 * time.Second) // its second key lives longer
		g.read(10 * time.Second)
		h := w.acquire(rw.Read(), bg, redlatch.Lease(time.Hour))
		w.release(h)
		if ttl := w.server.TTL("orders"); ttl != 50*time.Second {
			t.Errorf("the lock lives for %v, its longest hold for 50s", ttl)
		}
		w.wantFields("theirs", "orders", map[string]string{"mode": "read", java: "2", java2: "1"})
		if _, err := rw.Write().Try(bg); !errors.Is(err, redlatch.ErrBusy) {
			t.Errorf("a writer beside foreign readers: %v", err)
		}
		start := time.Now()
		wr := w.acquire(rw.Write(), bg)
		if d := time.Since(start); d < 50*time.Second || d > 51*time.Second {
			t.Errorf("the writer waited for %v", d)
		}
		if f.read(time.Second) {
			t.Error("a foreign reader beside our writer")
		}
		w.release(wr)
		w.wantNoKeys()
	})
}

func TestForeignZombiesDoNotKeepTheLock(t *testing.T) {
	inFakeTime(t, func(w *world) {
		rw := w.client(redlatch.Config{}).ReadWriteLock("orders")
		f := w.foreigner("orders", java)
		f.read(5 * time.Second)
		h := w.acquire(rw.Read(), bg)
		time.Sleep(time.Minute)
		w.wantFields("a zombie beside us", "orders", map[string]string{"mode": "read", java: "1", h.Owner(): "1"})
		w.release(h)
		w.wantNoKeys()
	})
}

func TestAForeignReadReleaseWakesOurWriter(t *testing.T) {
	inFakeTime(t, func(w *world) {
		rw := w.client(redlatch.Config{}).ReadWriteLock("orders")
		f := w.foreigner("orders", java)
		f.read(time.Hour)
		got := later(func() *redlatch.Hold { return w.acquire(rw.Write(), bg) })
		time.Sleep(100 * time.Millisecond)
		start := time.Now()
		if f.unread() != 1 {
			t.Fatal("still held")
		}
		w.release(<-got)
		if d := time.Since(start); d > 10*time.Millisecond {
			t.Errorf("it waited for %v", d)
		}
		w.wantNoKeys()
	})
}

// A lock of another type under the name is left alone.
func TestAReadWriteLockDoesNotBreakIntoAPlainLock(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c, other := w.client(redlatch.Config{}), w.client(redlatch.Config{})
		h := w.acquire(c.Lock("orders"), bg)
		for _, c := range []*redlatch.Client{c, other} {
			for _, l := range []*redlatch.Lock{c.ReadWriteLock("orders").Read(), c.ReadWriteLock("orders").Write()} {
				if _, err := l.Try(h.Context()); !errors.Is(err, redlatch.ErrBusy) {
					t.Errorf("Try: %v", err)
				}
			}
		}
		synctest.Wait()
		w.wantFields("the plain lock's", "orders", map[string]string{h.Owner(): "1"})
		w.release(h)
	})
}

// What a late take of ours took is seen by our own writer, whoever reads beside.
func TestAStrayReadOfOursIsReleasedByOurWriter(t *testing.T) {
	inFakeTime(t, func(w *world) {
		c := w.client(redlatch.Config{})
		stray := wire.Owner(c.ID(), 1<<40)
		w.foreigner("orders", java).read(time.Second)
		w.foreigner("orders", stray).read(time.Hour)
		start := time.Now()
		w.release(w.acquire(c.ReadWriteLock("orders").Write(), bg))
		if d := time.Since(start); d > 4*time.Second { // a poll, and the other reader's lease
			t.Errorf("it kept our writer out for %v", d)
		}
		w.wantNoKeys()
	})
}
