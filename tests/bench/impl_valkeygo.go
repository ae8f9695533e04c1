package main

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/redlatchvalkey"
	"github.com/valkey-io/valkey-go"
)

var redlatchValkeygo = implementation{
	name:     "redlatch on valkey-go",
	settings: "the same on " + valkeygoVersion() + " as its adapter sets it up",
	kind:     ours,
	skips:    contendedIsSkipped,
	open: func(j job) (locker, error) {
		driver, err := redlatchvalkey.New(valkeygoOptions(j))
		if err != nil {
			return nil, err
		}
		return openRedlatch(j, driver, func() { _ = driver.Close() })
	},
}

var floorValkeygo = implementation{
	name:     "floor on valkey-go",
	settings: "the same on valkey-go, with the options of redlatch on valkey-go",
	kind:     floor,
	skips:    contendedIsSkipped,
	open: func(j job) (locker, error) {
		client, err := valkey.NewClient(valkeygoOptions(j))
		if err != nil {
			return nil, err
		}
		l := &floorLocker{stop: client.Close}
		err = l.prepare(j, func(ctx context.Context, source string) error {
			return client.Do(ctx, client.B().ScriptLoad().Script(source).Build()).Error()
		}, func(sha string, keys []string, args ...string) func(context.Context) (int64, error) {
			return func(ctx context.Context) (int64, error) {
				return client.Do(ctx, client.B().Evalsha().Sha1(sha).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build()).AsInt64()
			}
		})
		return l, err
	},
}

// valkeygoOptions is as rueidisOptions.
func valkeygoOptions(j job) valkey.ClientOption {
	return valkey.ClientOption{
		InitAddress: []string{j.Addr}, DisableCache: true, DisableRetry: true, PipelineMultiplex: -1,
		ConnWriteTimeout: 3 * time.Second,
	}
}
