// Command workers is a pool of workers in two processes, of which three work at a
// time, and a deploy in the middle of it.
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
	"github.com/redlatch/redlatch/examples/internal/embedded"
	"github.com/redlatch/redlatch/semaphore"
)

const most = 3 // licences of the encoder, for all processes together

// work encodes films until there are none, or the process is told to end. A film
// that was not finished goes back.
func work(ctx context.Context, locks *redlatch.Client, films chan string, encode func(ctx context.Context, film string) error) error {
	licences := semaphore.NewExpirable(locks, "encoder", most) // a crash gives them back
	for {
		select {
		case <-ctx.Done():
			return nil
		case film, ok := <-films:
			if !ok {
				return nil
			}
			encoded := false
			err := licences.Do(ctx, 1, func(ctx context.Context) error {
				err := encode(ctx, film)
				encoded = err == nil
				return err
			})
			if !encoded {
				films <- film
			}
			switch {
			case errors.Is(err, redlatch.ErrClosed): // the process ends, as it was told
				return nil
			case err != nil:
				return err
			}
		}
	}
}

func run(ctx context.Context, out io.Writer) error {
	processes, stop, err := embedded.Clients(2)
	if err != nil {
		return err
	}
	defer stop()
	const count = 24
	films := make(chan string, count)
	for i := range count {
		films <- fmt.Sprintf("film %d", i)
	}
	var working, done atomic.Int32
	var tooMany atomic.Bool
	deploy := func() error { // what SIGTERM does to the first process
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		return processes[0].Shutdown(ctx)
	}
	g, group := errgroup.WithContext(ctx)
	encode := func(ctx context.Context, _ string) error {
		defer working.Add(-1)
		if working.Add(1) > most {
			tooMany.Store(true)
		}
		select {
		case <-time.After(10 * time.Millisecond): // the work
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		switch done.Add(1) {
		case count / 2:
			g.Go(deploy)
		case count:
			close(films)
		}
		return nil
	}

	for _, locks := range processes {
		for range 4 {
			g.Go(func() error { return work(group, locks, films, encode) })
		}
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if done.Load() != count || tooMany.Load() {
		return fmt.Errorf("%d of %d films; more than %d at a time: %v", done.Load(), count, most, tooMany.Load())
	}
	_, _ = fmt.Fprintf(out, "%d films encoded by 8 workers in 2 processes, never more than %d at a time\n", count, most)
	_, _ = fmt.Fprintln(out, "the first process was shut down after the half; its licences went on at once")
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
