package redlatchgoredis

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/connect"
	"github.com/redlatch/redlatch/driver"
)

// An opened is a Driver with a client of its own.
type opened struct {
	*Driver
	rdb redis.UniversalClient
}

// Close closes the client.
func (o opened) Close() error { return o.rdb.Close() }

// Open returns a client with connections of its own, which end when it is closed,
// to the server that the URL names. [connect.Parse] lists the forms of URL.
//
// A server that cannot be reached, or that refuses the credentials, is no error
// here: the driver tries again with every script, and the first script returns
// the error.
func Open(rawURL string, cfg redlatch.Config, opts ...Option) (*redlatch.Client, error) {
	s, err := connect.Parse(rawURL)
	if err != nil {
		return nil, err
	}
	return OpenSettings(s, cfg, opts...)
}

// OpenSettings does what Open does, with settings. It reads the files of TLS. What
// cfg leaves zero is as s.Config says.
//
// go-redis calls no function for the credentials of sentinels, so settings with
// SentinelCredentials are refused. It has no setting for how often a topology is
// read again, so Settings.Refresh has no effect.
func OpenSettings(s connect.Settings, cfg redlatch.Config, opts ...Option) (*redlatch.Client, error) {
	p, err := s.Plan(cfg)
	if err != nil {
		return nil, err
	}
	return p.Open(func() (driver.Redis, error) {
		rdb, err := NewClient(p)
		if err != nil {
			return nil, err
		}
		return opened{Use(rdb, opts...), rdb}, nil
	})
}

var errSentinelCredentials = errors.New("redlatchgoredis: go-redis asks no function for the credentials of sentinels; set SentinelUser and SentinelPassword, or open with rueidis or valkey-go")

var errClusterDatabase = errors.New("redlatchgoredis: go-redis knows no database but 0 of a cluster; leave the database out, or open with rueidis or valkey-go")

// mostOfContexts is the longest that this package lets a script take if the client
// minds contexts. It is also the longest that it tries to find a connection, if
// the client does not.
const mostOfContexts = 3 * time.Second

// NewClient returns a client of go-redis like the one that Open makes, for a
// program that sends other requests through it, too, and gives it to [Use].
// [connect.Settings.Plan] makes the plan. It refuses what go-redis cannot do.
func NewClient(p connect.Plan) (redis.UniversalClient, error) {
	switch {
	case p.SentinelCredentials != nil:
		return nil, errSentinelCredentials
	case p.Mode == connect.Cluster && p.Database != 0:
		return nil, errClusterDatabase
	}
	// Finding a connection and using it are two steps, which together last for Script
	// at most.
	dial, step := min(p.Dial, p.Script/2), p.Script/2
	contexts := p.Script <= mostOfContexts
	if !contexts {
		step = p.Script - min(dial, mostOfContexts)
	}
	all := redis.UniversalOptions{
		Addrs: p.Addresses, MasterName: p.MasterName, SentinelUsername: p.SentinelUser, SentinelPassword: string(p.SentinelPassword),
		Username: p.User, Password: string(p.Password), DB: p.Database, ClientName: p.Name, Protocol: 3,
		TLSConfig: p.Secure, DialTimeout: dial, ReadTimeout: step, WriteTimeout: step, ContextTimeoutEnabled: contexts,
	}
	if p.RESP2 {
		all.Protocol = 2
	}
	if p.Credentials != nil {
		all.CredentialsProviderContext = func(ctx context.Context) (string, string, error) {
			ctx, cancel := context.WithTimeout(ctx, p.Dial)
			defer cancel()
			return p.Credentials.Ask(ctx)
		}
	}
	switch p.Mode {
	case connect.Sentinel:
		return redis.NewFailoverClient(all.Failover()), nil
	case connect.Cluster:
		return redis.NewClusterClient(all.Cluster()), nil
	}
	one := all.Simple()
	if p.Unix {
		one.Network = "unix"
	}
	return redis.NewClient(one), nil
}
