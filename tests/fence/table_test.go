package fence_test

import (
	"context"
	"database/sql"
	"errors"
	"log"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/ncruces/go-sqlite3/driver"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/fence"
	"github.com/redlatch/redlatch/redlatchtest"
)

var (
	bg       = context.Background()
	accounts = fence.Table{Name: "accounts", ID: "id", Token: "fence", Dialect: fence.SQLite}
)

// schema has a trigger that writes down, inside the engine, which tokens were
// accepted in which order.
const schema = `
CREATE TABLE accounts (id INTEGER PRIMARY KEY, balance INTEGER, fence INTEGER NOT NULL DEFAULT 0);
CREATE TABLE accepted (n INTEGER PRIMARY KEY, account INTEGER, token INTEGER);
CREATE TRIGGER accept AFTER UPDATE ON accounts BEGIN
	INSERT INTO accepted (account, token) VALUES (new.id, new.fence);
END;
INSERT INTO accounts (id, balance) VALUES (7, 100), (8, 100);`

func open(dir, script string) (*sql.DB, error) {
	db, err := sql.Open("sqlite3", "file:"+filepath.ToSlash(filepath.Join(dir, "test.db"))+"?_pragma=busy_timeout(60000)&_pragma=journal_mode(wal)&_pragma=synchronous(off)")
	if err == nil {
		_, err = db.Exec(script)
	}
	return db, err
}

func openDB(t *testing.T) *sql.DB {
	t.Helper()
	db, err := open(t.TempDir(), schema)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func exampleDB(script string) (db *sql.DB, done func()) {
	dir, err := os.MkdirTemp("", "fence")
	if err != nil {
		log.Fatal(err)
	}
	db, err = open(dir, script)
	if err != nil {
		log.Fatal(err)
	}
	return db, func() {
		_ = db.Close()
		_ = os.RemoveAll(dir)
	}
}

func wantRow(t *testing.T, db *sql.DB, id, balance, token int64) {
	t.Helper()
	var b, f int64
	if err := db.QueryRow("SELECT balance, fence FROM accounts WHERE id = ?", id).Scan(&b, &f); err != nil {
		t.Error(err)
	} else if b != balance || f != token {
		t.Errorf("account %d has %d and token %d, want %d and %d", id, b, f, balance, token)
	}
}

// wantStale checks that err is what a refused token gets.
func wantStale(tb testing.TB, err error, token, highest int64) {
	tb.Helper()
	var stale *fence.StaleError
	if !errors.Is(err, fence.ErrStale) || !errors.As(err, &stale) || *stale != (fence.StaleError{Token: token, Highest: highest}) {
		tb.Errorf("got %v, want token %d refused for %d", err, token, highest)
	}
}

func TestTableFollowsTheRule(t *testing.T) {
	db := openDB(t)
	for _, token := range []int64{5, 5, 6} {
		if err := accounts.Update(bg, db, 7, token, "balance = balance + ?", token); err != nil {
			t.Errorf("token %d: %v", token, err)
		}
	}
	wantRow(t, db, 7, 116, 6)
	if err := accounts.Update(bg, db, 7, 6, "balance = ?", 116); err != nil { // nothing changes
		t.Error(err)
	}
	wantStale(t, accounts.Update(bg, db, 7, 5, "balance = 0"), 5, 6)
	wantStale(t, accounts.Check(bg, db, 7, 1), 1, 6)
	wantRow(t, db, 7, 116, 6)
	wantRow(t, db, 8, 100, 0) // rows have nothing to do with one another

	if err := accounts.Check(bg, db, 8, 3); err != nil {
		t.Error(err)
	}
	wantRow(t, db, 8, 100, 3)
	for _, err := range []error{accounts.Check(bg, db, 9, 3), accounts.Update(bg, db, 9, 3, "balance = ?", 1)} {
		if !errors.Is(err, sql.ErrNoRows) || errors.Is(err, fence.ErrStale) {
			t.Errorf("a row that is not there: %v", err)
		}
	}
	if err := accounts.Update(bg, db, 7, 0, "balance = ?", 1); !errors.Is(err, fence.ErrUnfenced) {
		t.Errorf("token 0: %v", err)
	}
	if err := accounts.Update(bg, db, 7, 9, "nonsense = ?", 1); err == nil || errors.Is(err, fence.ErrStale) {
		t.Errorf("a column that is not there: %v", err)
	}
	wantRow(t, db, 7, 116, 6)
	ended, cancel := context.WithCancel(bg)
	cancel()
	if err := accounts.Update(ended, db, 7, 9, "balance = ?", 1); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: %v", err)
	}
	wantRow(t, db, 7, 116, 6)
}

// A program that has not opened its database, or has no context, is told so, and
// does not panic.
func TestTableNeedsADatabaseAndAContext(t *testing.T) {
	ctxs := map[string]context.Context{"no database": bg, "nil context": nil}
	for want, ctx := range ctxs {
		for _, db := range []fence.DB{nil, (*sql.DB)(nil), (*sql.Conn)(nil), (*sql.Tx)(nil)} {
			for _, err := range []error{accounts.Check(ctx, db, 7, 1), accounts.Update(ctx, db, 7, 1, "balance = 0")} {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%T: %v, want %s", db, err, want)
				}
			}
		}
	}
}

// A column that may be NULL guards nothing, and that is said.
func TestTableNeedsATokenColumn(t *testing.T) {
	db, err := open(t.TempDir(), "CREATE TABLE accounts (id INTEGER PRIMARY KEY, balance INTEGER, fence INTEGER); INSERT INTO accounts VALUES (7, 100, NULL)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if err := accounts.Update(bg, db, 7, 1, "balance = ?", 1); err == nil || !strings.Contains(err.Error(), "NOT NULL") {
		t.Errorf("got %v", err)
	}
}

// A transaction that begins with Check is guarded as a whole: another holder
// waits for its end, and what is rolled back was never shown.
func TestTableInTransaction(t *testing.T) {
	db := openDB(t)
	tx, err := db.BeginTx(bg, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if err := accounts.Check(bg, tx, 7, 5); err != nil {
		t.Fatal(err)
	}
	stale := make(chan error)
	go func() { stale <- accounts.Update(bg, db, 7, 4, "balance = ?", 1) }()
	for range 3 {
		if err := accounts.Update(bg, tx, 8, 5, "balance = balance - ?", 10); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-stale:
			t.Fatalf("a stale write was answered during the transaction: %v", err)
		case <-time.After(20 * time.Millisecond): // it is given the time to be wrong
		}
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	wantStale(t, <-stale, 4, 5)
	wantRow(t, db, 7, 100, 5)
	wantRow(t, db, 8, 70, 5)

	tx, err = db.BeginTx(bg, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := accounts.Update(bg, tx, 7, 9, "balance = ?", 0); err != nil {
		t.Error(err)
	}
	wantStale(t, accounts.Check(bg, tx, 7, 8), 8, 9)
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	wantRow(t, db, 7, 100, 5)
	if err := accounts.Check(bg, db, 7, 6); err != nil {
		t.Errorf("what was rolled back was remembered: %v", err)
	}
}

// The whole story: a holder that lost its lock and does not know it.
func TestTableWithLock(t *testing.T) {
	db := openDB(t)
	lock := redlatchtest.NewClient(t, redlatch.Config{}).Lock("account:7", redlatch.Fenced())
	acquire := func() *redlatch.Hold {
		t.Helper()
		hold, err := lock.Acquire(bg)
		if err != nil {
			t.Fatal(err)
		}
		return hold
	}
	first := acquire()
	if err := accounts.Update(bg, db, 7, first.Token(), "balance = ?", 90); err != nil {
		t.Error(err)
	}
	redlatchtest.Lose(first)
	second := acquire()
	if err := accounts.Update(bg, db, 7, second.Token(), "balance = ?", 80); err != nil {
		t.Error(err)
	}
	wantStale(t, accounts.Update(bg, db, 7, first.Token(), "balance = ?", 70), first.Token(), second.Token())
	wantRow(t, db, 7, 80, second.Token())
	if err := second.Release(bg); err != nil {
		t.Error(err)
	}
}

// Many holders, most of them stale at one time or another, on connections of
// their own. The engine's own record of each row's accepted tokens never falls.
func TestTableHammer(t *testing.T) {
	db := openDB(t)
	var issued, accepted, refused atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				token := issued.Add(1)
				for range 1 + rand.IntN(4) {
					id := 7 + rand.Int64N(2)
					err := accounts.Update(bg, db, id, token, "balance = ?", token)
					switch {
					case err == nil:
						accepted.Add(1)
					case errors.Is(err, fence.ErrStale):
						refused.Add(1)
					default:
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	n := 0
	for _, id := range []int64{7, 8} {
		tokens := column(t, db, "SELECT token FROM accepted WHERE account = ? ORDER BY n", id)
		if !slices.IsSorted(tokens) {
			t.Errorf("the tokens that account %d accepted fall: %v", id, tokens)
		}
		n += len(tokens)
		if len(tokens) > 0 {
			last := tokens[len(tokens)-1]
			wantRow(t, db, id, last, last)
		}
	}
	if int64(n) != accepted.Load() || n == 0 || refused.Load() == 0 {
		t.Errorf("%d were accepted, %d are on record, %d were refused", accepted.Load(), n, refused.Load())
	}
}

func column(t *testing.T, db *sql.DB, query string, args ...any) (values []int64) {
	t.Helper()
	rows, err := db.Query(query, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var v int64
		if err := rows.Scan(&v); err != nil {
			t.Fatal(err)
		}
		values = append(values, v)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return values
}
