package fence_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/fence"
)

// A holder that lost its lock does not know it yet, and writes.
func ExampleRegister() {
	var register fence.Register[int] // with whoever owns the data

	// In a program the tokens are those of holds: hold.Token().
	const stale, token = 33, 34
	fmt.Println(register.Set(stale, 100))
	fmt.Println(register.Update(token, func(old int) (int, error) { return old - 30, nil }))

	fmt.Println(register.Set(stale, 90))
	value, _ := register.Peek()
	fmt.Println(value)

	// Output:
	// <nil>
	// <nil>
	// fence: token 33 is stale: 34 has been shown
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
	// fence: no fencing token: acquire the lock with the option Fenced
}

// The value of a Redis key, changed by the latest holder of a lock only.
func ExampleKey() {
	ctx := context.Background()
	lock, redis := openLock(), openRedis()
	state, err := fence.NewKey(redis, "orders:42:state") // any driver; not the lock's own name
	if err != nil {
		log.Print(err)
		return
	}
	hold, err := lock.Acquire(ctx) // a lock with Fenced
	if err != nil {
		log.Print(err)
		return
	}
	defer func() { _ = hold.Release(ctx) }()

	value, ok, err := state.Get(ctx, hold.Token()) // from here on those before us are out
	if err != nil {
		log.Print(err)
		return
	}
	if !ok || value == "paid" {
		err = state.Set(ctx, hold.Token(), "shipped", 0)
	}
	if errors.Is(err, fence.ErrStale) {
		log.Print("somebody else has the order by now: ", err)
	}
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

// The dialect is about parameters, and about how rows are counted. db may be a
// *sql.DB, a *sql.Conn or a *sql.Tx.
func ExampleDialect() {
	var db fence.DB = openDB()
	rooms := fence.Table{Name: "rooms", ID: "number", Token: "fence", Dialect: fence.MySQL}
	err := rooms.Update(context.Background(), db, 12, 34, "guest = ?", "Ada") // $1 in Postgres
	if err != nil {
		log.Print(err)
	}
}

func openDB() *sql.DB { return nil }

func openLock() *redlatch.Lock { return nil }

func openRedis() driver.Redis { return nil }

// Orders come and go, and so do their fences. No holder and no message may be held
// up for longer than a week.
func ExampleRemember() {
	state, err := fence.NewKey(openRedis(), "orders:42:state", fence.Remember(7*24*time.Hour))
	if err != nil {
		log.Print(err)
		return
	}
	_ = state.Set(context.Background(), 34, "shipped", 0)
}

// The error has both tokens.
func ExampleStaleError() {
	var guard fence.Guard
	_ = guard.Do(34, func() error { return nil })
	err := guard.Do(33, func() error { return nil })
	var stale *fence.StaleError
	if errors.As(err, &stale) {
		fmt.Println(stale.Token, "is below", stale.Highest)
	}
	// Output: 33 is below 34
}
