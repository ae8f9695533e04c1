package fence_test

import (
	"context"
	"database/sql"
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

// A holder that lost its lock does not know it yet, and writes.
func ExampleRegister() {
	ctx := context.Background()
	client, _, done := newClient()
	defer done()
	balance := client.FencedLock("account:7")
	var register fence.Register[int] // with whoever owns the data

	stale, err := balance.Acquire(ctx)
	if err != nil {
		log.Print(err)
		return
	}
	fmt.Println(register.Set(stale.Token(), 100))
	redlatchtest.Lose(stale)

	hold, err := balance.Acquire(ctx)
	if err != nil {
		log.Print(err)
		return
	}
	defer func() { _ = hold.Release(ctx) }()
	fmt.Println(register.Update(hold.Token(), func(old int) (int, error) { return old - 30, nil }))

	fmt.Println(register.Set(stale.Token(), 90))
	value, _ := register.Peek()
	fmt.Println(value)

	// Output:
	// <nil>
	// <nil>
	// fence: token 1 is stale: 2 has been shown
	// 70
}

// A Guard guards whatever a function does.
func ExampleGuard_Do() {
	var guard fence.Guard
	door := func(token int64) error {
		return guard.Do(token, func() error {
			fmt.Println("the door opens for", token)
			return nil
		})
	}
	_ = door(33)
	_ = door(34)
	err := door(33)
	fmt.Println(errors.Is(err, fence.ErrStale), err)
	fmt.Println(door(0))

	// Output:
	// the door opens for 33
	// the door opens for 34
	// true fence: token 33 is stale: 34 has been shown
	// fence: no fencing token: acquire the lock with FencedLock, or with the option Fenced
}

// The value of a Redis key, changed by the latest holder of a lock only.
func ExampleKey() {
	ctx := context.Background()
	client, redis, done := newClient()
	defer done()
	orders := client.FencedLock("orders:42")
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

var accounts = fence.Table{Name: "accounts", ID: "id", Token: "fence", Dialect: fence.Postgres}

// Rows of a table, changed by the latest holder of a lock only.
func ExampleTable_Update() {
	ctx := context.Background()
	db, lock := openDB(), openLock()
	hold, err := lock.Acquire(ctx)
	if err != nil {
		log.Print(err)
		return
	}
	defer func() { _ = hold.Release(ctx) }()

	err = accounts.Update(hold.Context(), db, 7, hold.Token(), "balance = $1, note = $2", 70, "rent")
	switch {
	case errors.Is(err, fence.ErrStale):
		log.Print("somebody else has the account by now: ", err)
	case errors.Is(err, sql.ErrNoRows):
		log.Print("no such account: ", err)
	case err != nil:
		log.Print(err)
	}
}

// A transaction that shows the token first is guarded as a whole.
func ExampleTable_Check() {
	ctx := context.Background()
	db, lock := openDB(), openLock()
	hold, err := lock.Acquire(ctx)
	if err != nil {
		log.Print(err)
		return
	}
	defer func() { _ = hold.Release(ctx) }()

	tx, err := db.BeginTx(hold.Context(), nil)
	if err != nil {
		log.Print(err)
		return
	}
	defer func() { _ = tx.Rollback() }()
	if err := accounts.Check(hold.Context(), tx, 7, hold.Token()); err != nil {
		log.Print(err)
		return
	}
	// The row of account 7 is locked now, and lower tokens are refused for good.
	// Whatever else the transaction writes about the account is guarded by that.
	if err := tx.Commit(); err != nil {
		log.Print(err)
	}
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

func openDB() *sql.DB { return nil }

func openLock() *redlatch.Lock { return nil }
