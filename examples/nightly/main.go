// Command nightly is a job that every replica starts and one replica does, each
// night.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/examples/internal/embedded"
)

// atNight is what each replica calls when its clock says so. The report takes a
// moment; a replica whose clock is late finds the lock taken nevertheless, because
// it stays for longer than clocks differ.
func atNight(ctx context.Context, locks *redlatch.Client, night string, report func(ctx context.Context) error) error {
	ran, err := locks.Lock("report:"+night, redlatch.MinHold(10*time.Minute)).TryDo(ctx, 0, report)
	if !ran && errors.Is(err, redlatch.ErrBusy) {
		return nil // another replica does it, or has done it
	}
	return err
}

func run(ctx context.Context, out io.Writer) error {
	replicas, stop, err := embedded.Clients(3)
	if err != nil {
		return err
	}
	defer stop()
	today, written := time.Now(), 0
	for i := range 3 {
		night := today.AddDate(0, 0, i).Format(time.DateOnly)
		var reports atomic.Int32
		g, group := errgroup.WithContext(ctx)
		for late, locks := range replicas {
			g.Go(func() error {
				time.Sleep(time.Duration(late) * 40 * time.Millisecond) // no two clocks are alike
				return atNight(group, locks, night, func(context.Context) error {
					reports.Add(1)
					_, _ = fmt.Fprintf(out, "%s: replica %d writes the report\n", night, late+1)
					return nil
				})
			})
		}
		if err := g.Wait(); err != nil {
			return err
		}
		switch n := reports.Load(); n {
		case 1:
			written++
		case 0:
			lock, err := admin.New(replicas[0]).Info(ctx, "report:"+night)
			if err != nil {
				return err
			}
			if !lock.Held() {
				return fmt.Errorf("%s: no report, and nobody has written one", night)
			}
			_, _ = fmt.Fprintf(out, "%s: written within the last 10 minutes, by another run of this program\n", night)
		default:
			return fmt.Errorf("%s: %d reports", night, n)
		}
	}
	_, _ = fmt.Fprintf(out, "3 replicas, 3 nights, %d reports\n", written)
	return nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout)
	stop()
	if err != nil {
		log.Fatal(err)
	}
}
