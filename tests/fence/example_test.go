package fence_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/redlatch/redlatch/fence"
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
