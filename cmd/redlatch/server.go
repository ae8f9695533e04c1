package main

import (
	"cmp"
	"os"
	"time"

	"github.com/redis/rueidis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/connect"
)

const defaultURL = "redis://localhost:6379"

// askTimeout is for how long the commands that only ask try to reach the
// server. run waits longer: for it an outage is a kind of waiting.
const askTimeout = 3 * time.Second

// address returns the URL of the server.
func (a *app) address() string {
	return cmp.Or(a.url, os.Getenv("REDLATCH_URL"), os.Getenv("REDIS_URL"), defaultURL)
}

func (a *app) shownAddress() string { return connect.Redact(a.address()) }

// client connects to the server. Call close at the end.
func (a *app) client(cfg redlatch.Config) (client *redlatch.Client, closeAll func(), err error) {
	settings, err := connect.Parse(a.address())
	if err != nil {
		return nil, nil, usage("%w", err)
	}
	a.ui.hide(string(settings.Password), settings.User, string(settings.SentinelPassword), settings.SentinelUser)
	driver, err := settings.Open(func(opt *rueidis.ClientOption) {
		// One lock needs one connection, and not half a megabyte to read it.
		opt.PipelineMultiplex = -1
		opt.ReadBufferEachConn, opt.WriteBufferEachConn = 16<<10, 16<<10
	})
	if err != nil {
		return nil, nil, a.serverFailure(err)
	}
	client, err = redlatch.New(driver, cfg)
	if err != nil {
		driver.Close()
		return nil, nil, &failure{code: exitSoftware, err: err}
	}
	return client, func() {
		_ = client.Close() // the locks are released or lost; there is nothing left to tell
		driver.Close()
	}, nil
}
