package fence_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"slices"
	"testing"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/fence"
	"github.com/redlatch/redlatch/redlatchtest"
)

// An account that only the latest holder of its lock can change.
func Example() {
	ctx := context.Background()
	db, done := exampleDB(`
		CREATE TABLE accounts (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL, fence INTEGER NOT NULL DEFAULT 0);
		INSERT INTO accounts (id, balance) VALUES (7, 100)`)
	defer done()
	accounts := fence.Table{Name: "accounts", ID: "id", Token: "fence", Dialect: fence.SQLite}

	// In a program the tokens are those of holds: hold.Token().
	const stale, token = 33, 34
	fmt.Println(accounts.Update(ctx, db, 7, stale, "balance = ?", 90))
	fmt.Println(accounts.Update(ctx, db, 7, token, "balance = balance - ?", 20))

	err := accounts.Update(ctx, db, 7, stale, "balance = ?", 80)
	fmt.Println(errors.Is(err, fence.ErrStale), err)
	fmt.Println(accounts.Update(ctx, db, 8, token, "balance = ?", 80))

	var balance, highest int64
	if err := db.QueryRow("SELECT balance, fence FROM accounts WHERE id = 7").Scan(&balance, &highest); err != nil {
		log.Print(err)
		return
	}
	fmt.Println(balance, highest)

	// Output:
	// <nil>
	// <nil>
	// true fence: token 33 is stale: 34 has been shown
	// fence: reading the token of accounts where id is 8: sql: no rows in result set
	// 70 34
}

// The value of a Redis key that only the latest holder of its lock can change.
func Example_key() {
	ctx := context.Background()
	client, redis, done := newClient()
	defer done()
	orders := client.Lock("orders:42", redlatch.Fenced())
	state, err := fence.NewKey(redis, "orders:42:state") // any driver; not the lock's own name
	if err != nil {
		log.Print(err)
		return
	}

	stale, err := orders.Acquire(ctx)
	if err != nil {
		log.Print(err)
		return
	}
	fmt.Println(state.Set(ctx, stale.Token(), "paid", 0))
	redlatchtest.Lose(stale)

	hold, err := orders.Acquire(ctx)
	if err != nil {
		log.Print(err)
		return
	}
	defer func() { _ = hold.Release(ctx) }()
	value, ok, err := state.Get(ctx, hold.Token()) // from here on the stale holder is out
	fmt.Println(value, ok, err)

	fmt.Println(state.Set(ctx, stale.Token(), "refunded", 0))
	fmt.Println(state.Set(ctx, hold.Token(), "shipped", 0))

	// Output:
	// <nil>
	// paid true <nil>
	// fence: token 1 is stale: 2 has been shown
	// <nil>
}

// An exampleTB is the test that an example is not.
type exampleTB struct {
	testing.TB

	cleanups []func()
}

func (tb *exampleTB) Helper()           {}
func (tb *exampleTB) Cleanup(f func())  { tb.cleanups = append(tb.cleanups, f) }
func (tb *exampleTB) Fatal(args ...any) { log.Fatal(args...) }
func (tb *exampleTB) Error(args ...any) { log.Print(args...) }

// newClient returns a client and the driver of an embedded server.
func newClient() (client *redlatch.Client, redis driver.Redis, done func()) {
	tb := &exampleTB{}
	redis = redlatchtest.NewServer(tb).Redis()
	client, err := redlatch.New(redis, redlatch.Config{})
	if err != nil {
		log.Fatal(err)
	}
	return client, redis, func() {
		_ = client.Close()
		for _, cleanup := range slices.Backward(tb.cleanups) {
			cleanup()
		}
	}
}
