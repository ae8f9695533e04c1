package synchronizers

import (
	"encoding/binary"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/ratelimit"
	"github.com/redlatch/redlatch/tests/internal/drivers"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// A server with very many records is kept from others by no single call, whatever
// has to be put right, and the limiter ends up with the right number of permits.
func TestNoCallOfARateLimiterGoesThroughAllRecords(t *testing.T) {
	const records, each, spare = 50_000, 2, 5
	locktest.OnRealServers(t, func(t *testing.T, server *testserver.Server) {
		c := locktest.ClientOf(t, drivers.Goredis.Open(t, drivers.Single(server.Addr())), redlatch.Config{})
		rdb := locktest.RawGoredis(t, server)
		asked := func() int { // how often for up to a thousand records
			found := regexp.MustCompile(`cmdstat_zrange:calls=(\d+)`).FindStringSubmatch(fmt.Sprint(server.MustDo("INFO", "commandstats")))
			if found == nil {
				return 0
			}
			n, _ := strconv.Atoi(found[1])
			return n
		}
		put := func(l *ratelimit.Limiter, from, to time.Duration) {
			t.Helper()
			if err := l.SetRate(bg, ratelimit.Rate{Permits: records*each + spare, Interval: time.Hour}); err != nil {
				t.Fatal(err)
			}
			now := time.Now()
			for i := 0; i < records; i += 1000 {
				batch := make([]redis.Z, 1000)
				for j := range batch {
					record := binary.LittleEndian.AppendUint32(fmt.Appendf([]byte{16}, "%016d", i+j), each)
					batch[j] = redis.Z{Score: float64(now.Add(-from + (from-to)*time.Duration(i+j)/records).UnixMilli()), Member: record}
				}
				if err := rdb.ZAdd(bg, "{"+l.Name()+"}:permits", batch...).Err(); err != nil {
					t.Fatal(err)
				}
			}
		}
		// drain takes what is there, and returns how much that was.
		drain := func(l *ratelimit.Limiter, most int) (got int) {
			t.Helper()
			for range 40 {
				before := asked()
				err := l.TryAcquire(bg, 1, 0)
				if n := asked() - before; n > 30 {
					t.Errorf("%s: one call has asked for records %d times", l.Name(), n)
				}
				var refused *redlatch.BusyError
				switch {
				case err == nil:
					got++
				case !errors.As(err, &refused):
					t.Fatal(err)
				case got > 0:
					return got
				}
				if got == most {
					return got
				}
			}
			return got
		}
		// right checks that the value is what the records leave of the rate.
		right := func(l *ratelimit.Limiter, rate int) {
			t.Helper()
			value, err := rdb.Get(bg, "{"+l.Name()+"}:value").Int()
			if err != nil {
				t.Fatal(err)
			}
			for _, record := range rdb.ZRange(bg, "{"+l.Name()+"}:permits", 0, -1).Val() {
				rate -= int(binary.LittleEndian.Uint32([]byte(record[17:])))
			}
			if value != rate {
				t.Errorf("%s: the value is %d, want %d", l.Name(), value, rate)
			}
		}
		missing := ratelimit.New(c, "missing", ratelimit.Rate{})
		put(missing, 50*time.Minute, time.Minute)
		if got := drain(missing, 2*spare); got != spare {
			t.Errorf("value missing: %d permits, want %d", got, spare)
		}
		if err := missing.UpdateRate(bg, ratelimit.Rate{Permits: records*each + 3*spare, Interval: time.Hour}); err != nil {
			t.Error(err)
		}
		if got := drain(missing, 3*spare); got != 2*spare {
			t.Errorf("another rate: %d permits, want %d", got, 2*spare)
		}
		if err := missing.UpdateRate(bg, ratelimit.Rate{Permits: records*each - 30_000, Interval: time.Hour}); err != nil {
			t.Error(err)
		}
		if got := drain(missing, 1); got != 0 {
			t.Error("more than a lower rate")
		}
		right(missing, records*each-30_000)

		leaving := ratelimit.New(c, "leaving", ratelimit.Rate{}) // while they are added up
		put(leaving, 2*time.Hour, time.Minute)
		if got := drain(leaving, 1); got != 1 {
			t.Error("leaving: no permit")
		}
		right(leaving, records*each+spare)

		behind := ratelimit.New(c, "behind", ratelimit.Rate{}) // of one whose clock is slow
		put(behind, 50*time.Minute, time.Minute)
		_ = behind.TryAcquire(bg, 1, 0)
		rdb.ZAdd(bg, "{behind}:permits", redis.Z{Score: float64(time.Now().Add(-45 * time.Minute).UnixMilli()), Member: binary.LittleEndian.AppendUint32([]byte("\x10of a slow clock "), spare)})
		if got := drain(behind, 1); got != 0 {
			t.Error("behind: a permit too many")
		}

		gone := ratelimit.New(c, "gone", ratelimit.Rate{})
		put(gone, 2*time.Hour, 61*time.Minute)
		rdb.Set(bg, "{gone}:value", 0, 0)
		if got := drain(gone, 3*spare); got != 3*spare {
			t.Errorf("all have left: %d permits", got)
		}
		for range 10 {
			_ = gone.TryAcquire(bg, 1, 0)
		}
		right(gone, records*each+spare)
		want := records*each + spare - 3*spare - 10
		if n, err := gone.Available(bg); n != want || err != nil {
			t.Errorf("available: %d (%v), want %d", n, err, want)
		}
	})
}
