package interop

import (
	"net"

	goredisv9 "github.com/redis/go-redis/v9"
	rueidisv1 "github.com/redis/rueidis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/goredis"
	"github.com/redlatch/redlatch/rueidis"
)

// drivers are the adapters of redlatch.
var drivers = map[string]func(addr string) (redis redlatch.Redis, closeIt func(), err error){
	"goredis": func(addr string) (redlatch.Redis, func(), error) {
		rdb := goredisv9.NewClient(&goredisv9.Options{
			Addr:         addr,
			DialTimeout:  patience,
			ReadTimeout:  patience,
			WriteTimeout: patience,
			PoolTimeout:  patience,
		})
		return goredis.Use(rdb), func() { _ = rdb.Close() }, nil
	},
	"rueidis": func(addr string) (redlatch.Redis, func(), error) {
		d, err := rueidis.New(rueidisv1.ClientOption{
			InitAddress:       []string{addr},
			ForceSingleClient: true,
			ConnWriteTimeout:  patience,
			Dialer:            net.Dialer{Timeout: patience / 2, KeepAlive: patience / 4},
		})
		if err != nil {
			return nil, nil, err
		}
		return d, d.Close, nil
	},
}
