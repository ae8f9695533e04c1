package goredis_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/observe"
	"github.com/redlatch/redlatch/redlatchgoredis"
)

// A program whose blocking commands had all connections of the pool was told that
// the server gives no answer.
func TestTheErrorNamesAPoolThatBlockingCommandsFill(t *testing.T) {
	s := testserver.Start(t, testserver.Kinds()[0])
	const d = 500 * time.Millisecond
	rdb := redis.NewClient(&redis.Options{
		Addr: s.Addr(), PoolSize: 4, DialTimeout: d, ReadTimeout: d, WriteTimeout: d, PoolTimeout: 2 * d,
		// A Conn of go-redis shares these without the lock that guards them.
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	defer rdb.Close()
	lost := make(chan observe.LostEvent, 1)
	c, err := redlatch.New(redlatchgoredis.Use(rdb), redlatch.Config{
		WatchdogTimeout: 3 * time.Second, OutageTimeout: 3 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	observe.Add(c, observe.Hooks{Lost: func(e observe.LostEvent) { lost <- e }})
	h, err := c.Lock("orders").Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 4 { // as a command that blocks has one
		conn := rdb.Conn()
		defer conn.Close()
		if err := conn.Ping(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
	}
	const want = "all connections of go-redis' pool are in use (4)"
	_, err = c.Lock("stock").Acquire(t.Context())
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Acquire: %v", err)
	}
	<-h.Context().Done()
	if e := <-lost; e.RenewErr == nil || !strings.Contains(e.RenewErr.Error(), want) {
		t.Errorf("lost: %v", e.RenewErr)
	}
}
