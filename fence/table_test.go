package fence_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/fence"
)

// What a real engine does with these statements is tested in tests/fence. Here
// are their texts, and what follows from answers that few engines give.

var bg = context.Background()

// A step is a statement that is expected, and its answer.
type step struct {
	statement string
	args      []driver.Value

	affected int64        // of an UPDATE
	token    driver.Value // of a SELECT; noRow if there is none
	err      error
}

type noRow struct{}

// A play is a database that expects the steps in this order.
type play struct {
	t     *testing.T
	steps []step
}

// rehearse returns a database, and checks in the end that all of it was played.
func rehearse(t *testing.T, steps ...step) *sql.DB {
	t.Helper()
	p := &play{t: t, steps: steps}
	db := sql.OpenDB(p)
	t.Cleanup(func() {
		_ = db.Close()
		if len(p.steps) > 0 {
			t.Errorf("not executed: %+v", p.steps)
		}
	})
	return db
}

func (p *play) next(statement string, args []driver.NamedValue) (step, error) {
	values := make([]driver.Value, len(args))
	for i := range args {
		values[i] = args[i].Value
	}
	if len(p.steps) == 0 {
		p.t.Errorf("executed beside the play: %s %v", statement, values)
		return step{}, errors.New("the play is over")
	}
	s := p.steps[0]
	p.steps = p.steps[1:]
	if statement != s.statement || !reflect.DeepEqual(values, s.args) {
		p.t.Errorf("executed: %s %v\nexpected: %s %v", statement, values, s.statement, s.args)
	}
	return s, s.err
}

func (p *play) Connect(context.Context) (driver.Conn, error) { return p, nil }
func (p *play) Driver() driver.Driver                        { return nil }
func (p *play) Prepare(string) (driver.Stmt, error)          { return nil, errors.New("not in the play") }

func (p *play) Begin() (driver.Tx, error) { return nil, errors.New("not in the play") }
func (p *play) Close() error              { return nil }

func (p *play) ExecContext(_ context.Context, statement string, args []driver.NamedValue) (driver.Result, error) {
	s, err := p.next(statement, args)
	return driver.RowsAffected(s.affected), err
}

func (p *play) QueryContext(_ context.Context, statement string, args []driver.NamedValue) (driver.Rows, error) {
	s, err := p.next(statement, args)
	return &rows{s.token}, err
}

// rows is one row or none, of one column.
type rows struct{ value driver.Value }

func (r *rows) Columns() []string { return []string{"fence"} }
func (r *rows) Close() error      { return nil }
func (r *rows) Next(dest []driver.Value) error {
	if r.value == (noRow{}) {
		return io.EOF
	}
	dest[0], r.value = r.value, noRow{}
	return nil
}

// A text is how a dialect says it.
type text struct {
	dialect       fence.Dialect
	set           string
	update, check string
	read          string
}

var texts = map[string]text{
	"SQLite": {
		fence.SQLite, "balance = ?, note = ?",
		"UPDATE accounts SET balance = ?, note = ?, fence = ? WHERE id = ? AND fence <= ?",
		"UPDATE accounts SET fence = ? WHERE id = ? AND fence <= ?",
		"SELECT fence FROM accounts WHERE id = ?",
	},
	"MySQL": {
		fence.MySQL, "balance = ?, note = ?",
		"UPDATE accounts SET balance = ?, note = ?, fence = ? WHERE id = ? AND fence <= ?",
		"UPDATE accounts SET fence = ? WHERE id = ? AND fence <= ?",
		"SELECT fence FROM accounts WHERE id = ? FOR UPDATE",
	},
	"Postgres": {
		fence.Postgres, "balance = $1, note = $2",
		"UPDATE accounts SET balance = $1, note = $2, fence = $3 WHERE id = $4 AND fence <= $5",
		"UPDATE accounts SET fence = $1 WHERE id = $2 AND fence <= $3",
		"SELECT fence FROM accounts WHERE id = $1",
	},
}

func TestTableStatements(t *testing.T) {
	for name, x := range texts {
		t.Run(name, func(t *testing.T) {
			broken := errors.New("broken")
			updateArgs := []driver.Value{int64(70), "rent", int64(5), int64(7), int64(5)}
			checkArgs := []driver.Value{int64(5), int64(7), int64(5)}
			update := func(affected int64) step { return step{statement: x.update, args: updateArgs, affected: affected} }
			check := func(affected int64) step { return step{statement: x.check, args: checkArgs, affected: affected} }
			read := func(token driver.Value) step {
				return step{statement: x.read, args: []driver.Value{int64(7)}, token: token}
			}
			failing := func(s step) step { s.err = broken; return s }
			stale := func(err error) bool { return err.Error() == "fence: token 5 is stale: 6 has been shown" }
			is := func(target error) func(error) bool {
				return func(err error) bool { return errors.Is(err, target) }
			}
			says := func(words string) func(error) bool {
				return func(err error) bool { return strings.Contains(err.Error(), words) }
			}
			// A row that is as it should be is counted by all but MySQL.
			var unchanged func(error) bool
			unchangedSteps := []step{check(0), read(int64(5)), check(0), read(int64(5))}
			if x.dialect != fence.MySQL {
				unchanged = says("not updated 4 times")
				unchangedSteps = slices.Concat(unchangedSteps, unchangedSteps)
			}
			for story, c := range map[string]struct {
				check bool
				want  func(error) bool // nil: no error
				steps []step
			}{
				"accepted":                    {false, nil, []step{update(1)}},
				"accepted check":              {true, nil, []step{check(1)}},
				"stale":                       {false, stale, []step{update(0), read(int64(6))}},
				"stale check":                 {true, stale, []step{check(0), read(int64(6))}},
				"stale is ErrStale":           {false, is(fence.ErrStale), []step{update(0), read(int64(6))}},
				"no such row":                 {false, is(sql.ErrNoRows), []step{update(0), read(noRow{})}},
				"the row appears":             {false, nil, []step{update(0), read(int64(0)), update(1)}},
				"the row appears, with it":    {false, nil, []step{update(0), read(int64(5)), update(1)}},
				"it appears and is taken":     {false, stale, []step{update(0), read(int64(5)), update(0), read(int64(6))}},
				"it appears and vanishes":     {false, is(sql.ErrNoRows), []step{update(0), read(int64(5)), update(0), read(noRow{})}},
				"nothing to change":           {true, unchanged, unchangedSteps},
				"it keeps coming and going":   {true, says("not updated 4 times"), []step{check(0), read(int64(4)), check(0), read(int64(5)), check(0), read(int64(4)), check(0), read(int64(5))}},
				"two rows":                    {false, says("not unique"), []step{update(2)}},
				"NULL":                        {false, says("NOT NULL"), []step{update(0), read(nil)}},
				"a failing update":            {false, is(broken), []step{failing(update(0))}},
				"a failing read":              {false, is(broken), []step{update(0), failing(read(nil))}},
				"a failing update, once more": {false, is(broken), []step{update(0), read(int64(0)), failing(update(0))}},
			} {
				t.Run(story, func(t *testing.T) {
					accounts := fence.Table{Name: "accounts", ID: "id", Token: "fence", Dialect: x.dialect}
					db := rehearse(t, c.steps...)
					var err error
					if c.check {
						err = accounts.Check(bg, db, 7, 5)
					} else {
						err = accounts.Update(bg, db, 7, 5, x.set, 70, "rent")
					}
					if (err == nil) != (c.want == nil) || (err != nil && !c.want(err)) {
						t.Errorf("got %v", err)
					}
				})
			}
		})
	}
}

// What cannot be right does not reach the database.
func TestTableRefusesAtOnce(t *testing.T) {
	db := rehearse(t)
	good := fence.Table{Name: "accounts", ID: "id", Token: "fence", Dialect: fence.SQLite}
	for _, token := range []int64{0, -1} {
		for _, err := range []error{good.Check(bg, db, 7, token), good.Update(bg, db, 7, token, "balance = ?", 1)} {
			if !errors.Is(err, fence.ErrUnfenced) {
				t.Errorf("token %d: %v", token, err)
			}
		}
	}
	if err := good.Update(bg, db, 7, 1, " "); err == nil || !strings.Contains(err.Error(), "nothing to set") {
		t.Errorf("an empty set: %v", err)
	}
	for _, change := range []func(*fence.Table){
		func(t *fence.Table) { t.Name = "" },
		func(t *fence.Table) { t.ID = "" },
		func(t *fence.Table) { t.Token = "" },
		func(t *fence.Table) { t.Dialect = 0 },
		func(t *fence.Table) { t.Dialect = fence.Postgres + 1 },
	} {
		bad := good
		change(&bad)
		if err := bad.Check(bg, db, 7, 1); err == nil || !strings.HasPrefix(err.Error(), "fence: Table") {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// The caller's arguments stay the caller's.
func TestTableLeavesArguments(t *testing.T) {
	x := texts["SQLite"]
	db := rehearse(t, step{statement: x.update, args: []driver.Value{int64(70), "rent", int64(5), int64(7), int64(5)}, affected: 1})
	all := []any{70, "rent", "mine", "mine", "mine"}
	accounts := fence.Table{Name: "accounts", ID: "id", Token: "fence", Dialect: x.dialect}
	if err := accounts.Update(bg, db, 7, 5, x.set, all[:2]...); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(all); got != "[70 rent mine mine mine]" {
		t.Errorf("the arguments are %s now", got)
	}
}
