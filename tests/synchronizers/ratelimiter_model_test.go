package synchronizers

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/ratelimit"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// An admission is permits that somebody got.
type admission struct {
	at time.Time
	n  int
}

// A rateLog is all admissions of those who share a state.
type rateLog struct {
	mu  sync.Mutex
	all []admission
}

func (x *rateLog) add(n int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.all = append(x.all, admission{time.Now(), n})
}

func (x *rateLog) total() (n int) {
	for _, a := range x.all {
		n += a.n
	}
	return n
}

// most returns how many permits were given at most in any window of that length.
func (x *rateLog) most(window time.Duration) (most int) {
	slices.SortStableFunc(x.all, func(a, b admission) int { return a.at.Compare(b.at) })
	first, sum := 0, 0
	for _, a := range x.all {
		sum += a.n
		for ; a.at.Sub(x.all[first].at) >= window; first++ {
			sum -= x.all[first].n
		}
		most = max(most, sum)
	}
	return most
}

// consistent checks, when nothing is in flight, that the value and the records
// of each state make up the rate.
func consistent(w *locktest.World, rate int, perClient ...*redlatch.Client) {
	w.Helper()
	suffixes := []string{""}
	if len(perClient) > 0 {
		suffixes = nil
	}
	for _, c := range perClient {
		suffixes = append(suffixes, ":"+c.ID())
	}
	for _, suffix := range suffixes {
		text, err := w.Server.Get("{api}:value" + suffix)
		if err != nil {
			continue // not used yet
		}
		value, _ := strconv.Atoi(text)
		sum := value
		members, _ := w.Server.ZMembers("{api}:permits" + suffix)
		for _, m := range members {
			b := []byte(m[len(m)-4:])
			sum += int(b[0]) + int(b[1])<<8 + int(b[2])<<16
		}
		if sum != rate || value < 0 {
			w.Errorf("%d are free of %d, and the records say that %d were given", value, rate, sum-value)
		}
	}
}

// Several clients want more than there is, over a network that takes its time,
// and that loses and delays what it carries; callers leave. No window has more
// than the rate, and all of the rate is used.
func TestRateLimiterNeverGivesMoreThanTheRate(t *testing.T) {
	const latency = 4 * time.Millisecond
	for seed := range uint64(6) {
		perClient, lossy := seed%2 == 1, seed%3 == 2
		t.Run(fmt.Sprintf("%d perClient=%v lossy=%v", seed, perClient, lossy), func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				r := &locktest.LockedRand{R: rand.New(rand.NewPCG(seed, 3))}
				rate := ratelimit.Rate{Permits: 5 + r.N(50), Interval: time.Duration(50+r.N(2000)) * time.Millisecond, PerClient: perClient}
				hook := func(_ string, _ []string, next func() (driver.Reply, error)) (driver.Reply, error) {
					time.Sleep(rand.N(latency / 2))
					if lossy && r.N(20) == 0 {
						_, _ = next()
						return driver.Reply{}, locktest.ErrReplyLost
					}
					if lossy && r.N(20) == 0 {
						after := time.Duration(r.N(3000)) * time.Millisecond
						go func() {
							time.Sleep(after)
							_, _ = next()
						}()
						return driver.Reply{}, locktest.ErrReplyLost
					}
					reply, err := next()
					time.Sleep(rand.N(latency / 2))
					return reply, err
				}
				duration := 20 * rate.Interval
				var wg sync.WaitGroup
				var clients []*redlatch.Client
				logs := []*rateLog{{}}
				for i := range 3 {
					c := w.Tapped(redlatch.Config{}, &locktest.Tap{Hook: hook})
					l := ratelimit.New(c, "api", ratelimit.Rate{})
					if perClient {
						clients = append(clients, c)
						if i > 0 {
							logs = append(logs, &rateLog{})
						}
					}
					log := logs[len(logs)-1]
					if _, err := l.TrySetRate(bg, rate); err != nil {
						t.Fatal(err)
					}
					life, cancel := context.WithTimeout(bg, duration)
					defer cancel()
					for range 8 {
						wg.Go(func() {
							for life.Err() == nil {
								n := 1 + r.N(rate.Permits)/(1+r.N(rate.Permits))
								ctx, leave := context.WithTimeout(life, rate.Interval/2+time.Duration(r.N(int(2*rate.Interval))))
								var err error
								if r.N(4) == 0 {
									if err = l.TryAcquire(ctx, n, 0); err != nil {
										time.Sleep(time.Duration(r.N(20)) * time.Millisecond)
									}
								} else {
									err = l.Acquire(ctx, n)
								}
								leave()
								if err == nil {
									log.add(n)
								}
							}
						})
					}
				}
				for range 40 {
					time.Sleep(duration / 40)
					synctest.Wait()
					consistent(w, rate.Permits, clients...)
				}
				wg.Wait()
				for _, log := range logs {
					if most := log.most(rate.Interval - latency); most > rate.Permits {
						t.Errorf("%d permits in an interval, the rate is %d", most, rate.Permits)
					}
					share := 0.7 // those who want many leave a part of an interval unused
					if lossy {
						share = 0.4
					}
					if got, all := log.total(), float64(rate.Permits)*float64(duration/rate.Interval); float64(got) < share*all {
						t.Errorf("%d permits were given of %v", got, all)
					}
				}
				time.Sleep(10 * time.Second)
			})
		})
	}
}

// redissonTake is what a Redisson client does, by its own clock.
var redissonTake = driver.NewScript("redisson.take", `-- As Redisson takes permits.
-- KEYS limiter value permits
-- ARGV n now random
-- returns nil, or the delay
local rate = tonumber(redis.call('HGET', KEYS[1], 'rate'))
local interval = tonumber(redis.call('HGET', KEYS[1], 'interval'))
local n, now = tonumber(ARGV[1]), tonumber(ARGV[2])
local function sum(records)
  local s = 0
  for _, r in ipairs(records) do
    s = s + string.byte(r, -4) + 256 * string.byte(r, -3)
  end
  return s
end
local value = tonumber(redis.call('GET', KEYS[2]))
if value then
  local released = sum(redis.call('ZRANGEBYSCORE', KEYS[3], 0, now - interval))
  if released > 0 then
    redis.call('ZREMRANGEBYSCORE', KEYS[3], 0, now - interval)
    if value + released > rate then
      value = rate - sum(redis.call('ZRANGE', KEYS[3], 0, -1))
    else
      value = value + released
    end
    redis.call('SET', KEYS[2], value)
  end
  if value < n then
    return 3 + interval - (now - redis.call('ZRANGE', KEYS[3], 0, 0, 'WITHSCORES')[2])
  end
else
  redis.call('SET', KEYS[2], rate)
end
redis.call('ZADD', KEYS[3], now, string.char(16) .. ARGV[3] .. string.char(n % 256, math.floor(n / 256), 0, 0))
redis.call('DECRBY', KEYS[2], n)
return nil
`)

// With Redisson's clients, whose clocks are wrong, the interval is too short by
// as much as they differ, and by nothing else; both sides get their permits.
func TestRateLimiterWithRedissonClientsOfOtherClocks(t *testing.T) {
	const rate, interval = 20, 2 * time.Second
	for _, skews := range [][]time.Duration{{0}, {500 * time.Millisecond}, {-500 * time.Millisecond}, {500 * time.Millisecond, -300 * time.Millisecond}} {
		t.Run(fmt.Sprint(skews), func(t *testing.T) {
			locktest.InFakeTime(t, func(w *locktest.World) {
				w.Limiter(rate, interval)
				ours, theirs := &rateLog{}, &rateLog{}
				var all rateLog
				life, cancel := context.WithTimeout(bg, 10*interval)
				defer cancel()
				var wg sync.WaitGroup
				for range 2 {
					l := ratelimit.New(w.Client(redlatch.Config{}), "api", ratelimit.Rate{})
					for range 3 {
						wg.Go(func() {
							for l.Acquire(life, 1) == nil {
								ours.add(1)
								all.add(1)
								time.Sleep(rand.N(100 * time.Millisecond))
							}
						})
					}
				}
				earliest, latest := time.Duration(0), time.Duration(0)
				for _, skew := range skews {
					earliest, latest = min(earliest, skew), max(latest, skew)
					d := w.Driver()
					wg.Go(func() {
						for life.Err() == nil {
							now := time.Now().Add(skew).UnixMilli()
							reply, err := d.Run(bg, redissonTake, []string{"api", "{api}:value", "{api}:permits"}, []string{"1", fmt.Sprint(now), fmt.Sprintf("%016x", rand.Uint64())})
							switch {
							case err != nil:
								t.Errorf("a Java client: %v", err)
								return
							case reply.Kind == driver.ReplyInt:
								time.Sleep(time.Duration(max(reply.Int, 1)) * time.Millisecond)
								continue
							}
							theirs.add(1)
							all.add(1)
							time.Sleep(rand.N(100 * time.Millisecond))
						}
					})
				}
				wg.Wait()
				window := interval - (latest - earliest) - time.Millisecond // their grants count from the millisecond before
				if most := all.most(window); most > rate {
					t.Errorf("%d permits in %v, the rate is %d", most, window, rate)
				}
				if got := all.total(); got < rate*7 {
					t.Errorf("%d permits were given in 10 intervals", got)
				}
				if ours.total() == 0 || theirs.total() == 0 { // who is ahead gets most
					t.Errorf("%d are ours, %d are theirs", ours.total(), theirs.total())
				}
			})
		})
	}
}

// A clock that is an hour ahead does not block everybody for an hour, nor does a
// server whose own clock was.
func TestRateLimiterIsNotBlockedByTheFuture(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		l := w.Limiter(5, 2*time.Second)
		w.TakeRate(l, 1)
		for i := range 4 {
			at := time.Now().Add(time.Duration(i) * 20 * time.Minute)
			_, _ = w.Server.ZAdd("{api}:permits", float64(at.UnixMilli()), fmt.Sprintf("\x10%016d\x01\x00\x00\x00", i))
			_, _ = w.Server.Incr("{api}:value", -1)
		}
		w.WantBusy(l, 1, 2*time.Second)
		time.Sleep(2 * time.Second)
		w.TakeRate(l, 5)
	})
}
