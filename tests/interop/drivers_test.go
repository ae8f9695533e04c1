package interop

import (
	"net"

	goredisv9 "github.com/redis/go-redis/v9"
	rueidisv1 "github.com/redis/rueidis"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/redlatchgoredis"
	"github.com/redlatch/redlatch/redlatchrueidis"
)

// A place is where a story's servers are.
type place struct {
	addrs   []string // of the only one, of sentinels, or of nodes of a cluster
	master  string   // as sentinels call it
	cluster bool
}

func single(addr string) place { return place{addrs: []string{addr}} }

// adapters are those of redlatch.
var adapters = map[string]func(at place) (redis driver.Redis, closeIt func(), err error){
	"goredis": func(at place) (driver.Redis, func(), error) {
		rdb := goredisv9.NewUniversalClient(&goredisv9.UniversalOptions{
			Addrs:         at.addrs,
			MasterName:    at.master,
			IsClusterMode: at.cluster,
			DialTimeout:   patience,
			ReadTimeout:   patience,
			WriteTimeout:  patience,
			PoolTimeout:   patience,
		})
		return redlatchgoredis.Use(rdb), func() { _ = rdb.Close() }, nil
	},
	"rueidis": func(at place) (driver.Redis, func(), error) {
		d, err := redlatchrueidis.New(rueidisv1.ClientOption{
			InitAddress:       at.addrs,
			Sentinel:          rueidisv1.SentinelOption{MasterSet: at.master},
			ForceSingleClient: at.master == "" && !at.cluster,
			ConnWriteTimeout:  patience,
			Dialer:            net.Dialer{Timeout: patience / 2, KeepAlive: patience / 4},
		})
		if err != nil {
			return nil, nil, err
		}
		return d, func() { _ = d.Close() }, nil
	},
}
