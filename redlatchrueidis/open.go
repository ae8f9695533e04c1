package redlatchrueidis

import (
	"context"
	"crypto/tls"
	"net"
	"time"

	"github.com/redis/rueidis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/connect"
	"github.com/redlatch/redlatch/driver"
)

// Open returns a client with connections of its own, which end when it is closed,
// to the server that the URL names. [connect.Parse] lists the forms of URL.
//
// A server that cannot be reached is no error here: the driver tries again with
// every script, and the first script returns the error.
func Open(rawURL string, cfg redlatch.Config) (*redlatch.Client, error) {
	s, err := connect.Parse(rawURL)
	if err != nil {
		return nil, err
	}
	return OpenSettings(s, cfg)
}

// OpenSettings does what Open does, with settings. It reads the files of TLS. What
// cfg leaves zero is as s.Config says.
func OpenSettings(s connect.Settings, cfg redlatch.Config) (*redlatch.Client, error) {
	p, err := s.Plan(cfg)
	if err != nil {
		return nil, err
	}
	return p.Open(func() (driver.Redis, error) { return New(Options(p)) })
}

// Options returns the options with which Open makes its driver, for a program that
// changes some of them before it calls [New], or that uses rueidis itself.
// [connect.Settings.Plan] makes the plan.
func Options(p connect.Plan) rueidis.ClientOption {
	opt := rueidis.ClientOption{
		InitAddress:      p.Addresses,
		Username:         p.User,
		Password:         string(p.Password),
		SelectDB:         p.Database,
		ClientName:       p.Name,
		TLSConfig:        p.Secure,
		Dialer:           net.Dialer{Timeout: p.Dial},
		ConnWriteTimeout: p.Script,
		AlwaysRESP2:      p.RESP2,
		// Nothing of redlatch reads through the client's cache, and servers
		// without CLIENT TRACKING (embedded ones, some proxies) refuse it.
		DisableCache: true,
	}
	switch p.Mode {
	case connect.Single:
		// One server it is, whatever it says about slots.
		opt.ForceSingleClient = true
	case connect.Sentinel:
		opt.Sentinel = rueidis.SentinelOption{
			MasterSet: p.MasterName,
			Username:  p.SentinelUser, Password: string(p.SentinelPassword), ClientName: p.Name,
			TLSConfig: p.Secure, TopologyRefreshInterval: p.Refresh,
			// KeepAlive is also the pause between the pings that notice a
			// sentinel that has gone silent.
			Dialer: net.Dialer{Timeout: opt.Dialer.Timeout, KeepAlive: time.Second},
		}
	case connect.Cluster:
		opt.ClusterOption.ShardsRefreshInterval = p.Refresh
	}
	if p.Unix {
		opt.DialCtxFn = func(ctx context.Context, path string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return d.DialContext(ctx, "unix", path)
		}
	}
	logIn(p, &opt)
	return opt
}
