package opengoredis

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch/connect"
	"github.com/redlatch/redlatch/redlatchgoredis"
)

// A Driver is a redlatchgoredis.Driver with a client of its own.
type Driver struct {
	*redlatchgoredis.Driver
	rdb redis.UniversalClient
}

// Close closes the client. Close the redlatch.Client that uses the driver first.
func (d *Driver) Close() { _ = d.rdb.Close() }

// Client returns the client, for other requests of the program to the server. It belongs to the
// driver.
func (d *Driver) Client() redis.UniversalClient { return d.rdb }

// Open connects to the server that the URL names. [connect.Parse] lists the forms of
// URL. The caller must close the driver, after the redlatch.Client that uses it.
//
// A server that cannot be reached, or that refuses the credentials, is no error
// here: the driver tries again with every script, and the first script returns
// the error.
func Open(rawURL string) (*Driver, error) {
	s, err := connect.Parse(rawURL)
	if err != nil {
		return nil, err
	}
	return OpenSettings(s)
}

// OpenSettings does what Open does, with settings and with options of the driver. It reads the
// files of TLS.
func OpenSettings(s connect.Settings, opts ...redlatchgoredis.Option) (*Driver, error) {
	rdb, err := Client(s)
	if err != nil {
		return nil, err
	}
	return &Driver{redlatchgoredis.Use(rdb, opts...), rdb}, nil
}

var errSentinelCredentials = errors.New("connect: go-redis asks no function for the credentials of sentinels; set SentinelUser and SentinelPassword, or open with rueidis or valkey-go")

var errClusterDatabase = errors.New("connect: go-redis knows no database but 0 of a cluster; leave the database out, or open with rueidis or valkey-go")

// mostOfContexts is the longest that package redlatchgoredis lets a script take if the client minds contexts. It is also the
// longest that it tries to find a connection, if the client does not.
const mostOfContexts = 3 * time.Second

// Client returns a client like the one that Open makes, for a program that uses go-redis itself. It reads the
// files of TLS.
func Client(s connect.Settings) (redis.UniversalClient, error) {
	p, err := s.Plan()
	switch {
	case err != nil:
		return nil, err
	case p.SentinelCredentials != nil:
		return nil, errSentinelCredentials
	case p.Mode == connect.Cluster && p.Database != 0:
		return nil, errClusterDatabase
	}
	// Finding a connection and using it are two steps, which together last for Script at most.
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
