package fence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// A Dialect says what a Table has to know about a database.
type Dialect uint8

// The dialects. Another database may use one of them if it is the same in the
// two respects named here.
const (
	// SQLite: parameters are written ?.
	SQLite Dialect = iota + 1
	// MySQL: parameters are written ?. An UPDATE may count only the rows that it
	// has made different (go-sql-driver/mysql does, without clientFoundRows=true).
	// That costs a Table a few more statements when a write changes nothing. And a
	// transaction may read older rows than it updates, so a Table reads FOR UPDATE.
	MySQL
	// Postgres: parameters are written $1, $2, ...
	Postgres
)

// A Table says where an SQL table keeps its tokens: in a column of the guarded
// row itself,
//
//	ALTER TABLE accounts ADD COLUMN fence BIGINT NOT NULL DEFAULT 0
//
// so that comparing, remembering and writing are one statement, for
// Table{Name: "accounts", ID: "id", Token: "fence", Dialect: ...}:
//
//	UPDATE accounts SET balance = ?, fence = ? WHERE id = ? AND fence <= ?
//	UPDATE accounts SET balance = $1, fence = $2 WHERE id = $3 AND fence <= $4
//
// If no row was updated, a second statement finds out why:
//
//	SELECT fence FROM accounts WHERE id = ?              (SQLite)
//	SELECT fence FROM accounts WHERE id = ? FOR UPDATE   (MySQL)
//	SELECT fence FROM accounts WHERE id = $1             (Postgres)
//
// Rows are inserted with token 0. A row that is deleted and inserted again has
// forgotten its token, so mark such rows as deleted instead.
//
// The names stand in the statements as they are: quote them if they need it, and
// never take them from input.
//
// Equal tokens are those of one holder. Its updates take effect in the order in
// which the database executes them. After an error other than those named at
// Update, the database may have executed the update or not. Rarely, it executes
// the update later, even after the next update with the same token; it never does
// so after an update with a higher one. If the holder goes on after such an error,
// or must not update twice (balance = balance - 10), give the row a version and
// check it in set, or write in a transaction.
//
// A Table is a value without state, and safe for concurrent use.
type Table struct {
	Name    string // of the table
	ID      string // the column that tells its rows apart: a primary or unique key
	Token   string // the column of the highest token, an integer of 64 bits, not null
	Dialect Dialect
}

// A DB is a *sql.DB, *sql.Conn or *sql.Tx.
type DB interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Update shows the token for one row and, if it is accepted, changes the row, in
// one statement. set is what follows SET, with a parameter for each of args
// ("balance = ?, owner = ?", or "balance = $1, owner = $2"); like the names, it is
// part of the program and not input.
//
// It returns a *StaleError if a higher token has been shown, ErrUnfenced if token
// is 0 or less, and sql.ErrNoRows, wrapped, if there is no such row. Then nothing
// was changed. Errors of the database are wrapped.
//
// With a *sql.Tx the row is locked from then on until the transaction ends, so
// everything that the transaction does after it is guarded. Roll the transaction
// back after an error. What it did, the token included, counts when it is
// committed.
func (t Table) Update(ctx context.Context, db DB, id any, token int64, set string, args ...any) error {
	if strings.TrimSpace(set) == "" {
		return errors.New("fence: Update: nothing to set; Check shows a token and changes nothing else")
	}
	return t.update(ctx, db, id, token, set+", ", args)
}

// Check shows the token for one row and changes nothing else: the row refuses
// lower tokens from now on. Its errors are Update's. At the start of a
// transaction, Check guards everything that the transaction does, in any table, if
// all writers of these tables do the same.
func (t Table) Check(ctx context.Context, db DB, id any, token int64) error {
	return t.update(ctx, db, id, token, "", nil)
}

// rounds is how often Update tries again when it finds no row to update, though
// there should be one.
const rounds = 4

func (t Table) update(ctx context.Context, db DB, id any, token int64, set string, args []any) error {
	if err := t.check(); err != nil {
		return err
	}
	switch {
	case ctx == nil:
		return errNilContext
	case none(db):
		return errors.New("fence: no database: the *sql.DB, *sql.Conn or *sql.Tx is nil")
	}
	if err := check(token); err != nil {
		return err
	}
	n := len(args)
	update := fmt.Sprintf("UPDATE %s SET %s%s = %s WHERE %s = %s AND %s <= %s",
		t.Name, set, t.Token, t.parameter(n+1), t.ID, t.parameter(n+2), t.Token, t.parameter(n+3))
	args = append(args[:n:n], token, id, token)

	present := false // the row was there, with this very token, before the update
	for range rounds {
		updated, err := t.exec(ctx, db, update, args)
		switch {
		case err != nil:
			return fmt.Errorf("fence: updating %s where %s is %v: %w", t.Name, t.ID, id, err)
		case updated == 1:
			return nil
		case updated > 1:
			return fmt.Errorf("fence: %d rows of %s were updated, which all have %v for %s: that column is not unique", updated, t.Name, id, t.ID)
		}
		highest, err := t.highest(ctx, db, id)
		switch {
		case err != nil:
			return fmt.Errorf("fence: reading the token of %s where %s is %v: %w", t.Name, t.ID, id, err)
		case highest > token:
			return &StaleError{Token: token, Highest: highest}
		case present && highest == token && t.Dialect == MySQL:
			return nil // the row was as it should be, which MySQL does not count
		}
		// The row has appeared since, or the first half of the case above is true.
		present = highest == token
	}
	return fmt.Errorf("fence: the row of %s where %s is %v was not updated %d times, although its token allows it", t.Name, t.ID, id, rounds)
}

// none says that db is nil, or a pointer that is.
func none(db DB) bool {
	v := reflect.ValueOf(db)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}

func (t Table) exec(ctx context.Context, db DB, update string, args []any) (int64, error) {
	result, err := db.ExecContext(ctx, update, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// highest returns the row's token.
func (t Table) highest(ctx context.Context, db DB, id any) (int64, error) {
	query := fmt.Sprintf("SELECT %s FROM %s WHERE %s = %s", t.Token, t.Name, t.ID, t.parameter(1))
	if t.Dialect == MySQL {
		query += " FOR UPDATE"
	}
	var highest sql.NullInt64
	if err := db.QueryRowContext(ctx, query, id).Scan(&highest); err != nil {
		return 0, err
	}
	if !highest.Valid {
		return 0, fmt.Errorf("%s is NULL; make the column NOT NULL DEFAULT 0", t.Token)
	}
	return highest.Int64, nil
}

// parameter returns the nth parameter of a statement.
func (t Table) parameter(n int) string {
	if t.Dialect == Postgres {
		return "$" + strconv.Itoa(n)
	}
	return "?"
}

func (t Table) check() error {
	switch {
	case t.Name == "" || t.ID == "" || t.Token == "":
		return fmt.Errorf("fence: Table%+v needs Name, ID and Token", t)
	case t.Dialect < SQLite || t.Dialect > Postgres:
		return fmt.Errorf("fence: Table.Dialect is %d; use SQLite, MySQL or Postgres", t.Dialect)
	}
	return nil
}
