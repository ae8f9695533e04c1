package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch/internal/lua"
)

const (
	renewedKeys     = 10_000 // that each round renews
	renewalRounds   = 10
	togetherSent    = 64  // scripts at a time, as a client has senders
	renewedTogether = 100 // that share a script at most
)

// renewals measures what the server takes to renew a lock, if N of them share a
// script. In a Cluster those of one slot do.
func (c *costMeter) renewals() error {
	ctx := context.Background()
	if err := c.makeLocks(ctx); err != nil {
		return err
	}
	renew := lua.LockRenew
	if err := c.server.rdb.ScriptLoad(ctx, renew.Source()).Err(); err != nil {
		return err
	}
	before, err := c.server.counters()
	if err != nil {
		return err
	}
	// Each round has a longer lease, so that none finds one that is long enough.
	for round := range renewalRounds {
		lease := fmt.Sprint(30_000 + 1000*round)
		for i := 0; i < renewedKeys; {
			answers, err := c.server.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
				for range togetherSent {
					var keys []string
					var args []any
					for ; len(keys) < c.N && i < renewedKeys; i++ {
						keys, args = append(keys, renewedKey(i)), append(args, renewedOwner(i), lease, "0")
					}
					if len(keys) > 0 {
						p.EvalSha(ctx, renew.SHA(), keys, args...)
					}
				}
				return nil
			})
			if err != nil {
				return err
			}
			if err := allRenewed(answers); err != nil {
				return err
			}
		}
	}
	after, err := c.server.counters()
	if err != nil {
		return err
	}
	c.got.Renewal = 1e6 * after.minus(before).cpu / (renewedKeys * renewalRounds)
	return nil
}

// allRenewed says whether each script has renewed all of its locks. One that does
// not renew is quicker.
func allRenewed(answers []redis.Cmder) error {
	for _, answer := range answers {
		each, err := answer.(*redis.Cmd).Int64Slice()
		if err != nil {
			return fmt.Errorf("not renewed: %w", err)
		}
		if len(each) == 0 || slices.ContainsFunc(each, func(is int64) bool { return is != 1 }) {
			return fmt.Errorf("not all renewed: %v", each)
		}
	}
	return nil
}

func renewedKey(i int) string   { return fmt.Sprint("renewed:", i) }
func renewedOwner(i int) string { return fmt.Sprintf("%s:%d", shareClient, i) }

// makeLocks makes what is renewed.
func (c *costMeter) makeLocks(ctx context.Context) error {
	for i := 0; i < renewedKeys; i += 1000 {
		if _, err := c.server.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
			for k := i; k < i+1000; k++ {
				p.HSet(ctx, renewedKey(k), renewedOwner(k), 1)
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}
