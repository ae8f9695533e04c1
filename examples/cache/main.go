// Command cache is a cache of prices before an SQL table: any number read, one
// writes, and a writer that was paused too long writes nothing.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"sync/atomic"

	_ "github.com/ncruces/go-sqlite3/driver" // the database of this example
	_ "github.com/ncruces/go-sqlite3/vfs/memdb"
	"golang.org/x/sync/errgroup"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/examples/internal/embedded"
	"github.com/redlatch/redlatch/fence"
)

// prices is the table. Its column fence has the highest token that a row has seen.
var prices = fence.Table{Name: "prices", ID: "id", Token: "fence", Dialect: fence.SQLite}

// A shop is one replica: its locks, and its connection to the database.
type shop struct {
	locks *redlatch.Client
	db    *sql.DB
}

func (s *shop) lock(id int) *redlatch.ReadWriteLock {
	return s.locks.ReadWriteLock(fmt.Sprintf("price:%d", id), redlatch.Fenced())
}

// read returns a price and when it was set, which belong together. Readers do not
// wait for one another.
func (s *shop) read(ctx context.Context, id int) (price, version int, err error) {
	err = s.lock(id).Read().Do(ctx, func(ctx context.Context) error {
		return s.db.QueryRowContext(ctx, "SELECT price, version FROM prices WHERE id = ?", id).Scan(&price, &version)
	})
	return price, version, err
}

// write sets a price. between is what happens between the decision and the write:
// most often nothing, now and then a pause of the garbage collector, or of the
// whole machine. The token makes the database refuse one who writes too late.
func (s *shop) write(ctx context.Context, id, price int, between func()) error {
	hold, err := s.lock(id).Write().Acquire(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = hold.Release(ctx) }()
	between()
	return prices.Update(ctx, s.db, id, hold.Token(), "price = ?, version = version + 1", price)
}

func run(ctx context.Context, out io.Writer) error {
	clients, stop, err := embedded.Clients(3)
	if err != nil {
		return err
	}
	defer stop()
	db, err := sql.Open("sqlite3", "file:/prices?vfs=memdb")
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	if _, err := db.ExecContext(ctx, `CREATE TABLE prices (id INTEGER PRIMARY KEY, price INTEGER, version INTEGER, fence INTEGER NOT NULL DEFAULT 0);
		INSERT INTO prices (id, price, version) VALUES (7, 0, 0)`); err != nil {
		return err
	}
	shops := make([]*shop, len(clients))
	for i, c := range clients {
		shops[i] = &shop{c, db}
	}

	// Each write sets the price to the number of the version that it makes, under the
	// lock.
	const count = 60
	var torn atomic.Int32
	g, readers := errgroup.WithContext(ctx)
	for i := range count {
		s := shops[i%len(shops)]
		g.Go(func() error {
			if i%10 == 0 {
				return s.raise(readers)
			}
			price, version, err := s.read(readers, 7)
			if price != version {
				torn.Add(1)
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	price, version, err := shops[0].read(ctx, 7)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, "%d reads and %d writes of 3 replicas: %d reads saw half of a write\n", count-version, version, torn.Load())
	if torn.Load() > 0 || price != 6 {
		return fmt.Errorf("%d torn reads, and the price is %d", torn.Load(), price)
	}

	// A writer is paused for so long that its lock is taken away, and another one has
	// written when it wakes.
	late := shops[0].write(ctx, 7, 99, func() {
		_, err = admin.ForceRelease(ctx, shops[1].lock(7).Write())
		err = errors.Join(err, shops[1].raise(ctx))
	})
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintln(out, "a writer that was paused:", late)
	if !errors.Is(late, fence.ErrStale) {
		return fmt.Errorf("it was not refused: %w", late)
	}
	if price, version, err = shops[0].read(ctx, 7); err != nil || price != version {
		return fmt.Errorf("the price is %d, version %d, %w", price, version, err)
	}
	_, _ = fmt.Fprintf(out, "the price is %d, as the last one who had the lock has set it\n", price)
	return nil
}

// raise sets the price to the number of the version that this makes.
func (s *shop) raise(ctx context.Context) error {
	return s.lock(7).Write().Do(ctx, func(ctx context.Context) error {
		return prices.Update(ctx, s.db, 7, redlatch.HoldFrom(ctx).Token(), "price = version + 1, version = version + 1")
	})
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout)
	stop()
	if err != nil {
		log.Fatal(err)
	}
}
