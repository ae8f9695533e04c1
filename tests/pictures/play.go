package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/redlatchrueidis"
	"github.com/redlatch/redlatch/semaphore"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// A play is what there is to see: clients that use a few locks as the services of
// a shop might.
type play struct {
	ctx     context.Context //nolint:containedctx // of all that is done
	end     context.CancelFunc
	addr    string
	work    sync.WaitGroup
	closing []func()
}

func newPlay(ctx context.Context, addr string) *play {
	p := &play{addr: addr}
	p.ctx, p.end = context.WithCancel(ctx)
	return p
}

func (p *play) close() {
	p.end()
	p.work.Wait()
	for _, f := range p.closing {
		f()
	}
}

// client is one of its own, with connections of its own, which says that it runs
// there.
func (p *play) client(name, host string, pid int) (*redlatch.Client, error) {
	d, err := redlatchrueidis.New(rueidis.ClientOption{InitAddress: []string{p.addr}, ForceSingleClient: true})
	if err != nil {
		return nil, err
	}
	c, err := redlatch.New(d, redlatch.Config{
		CallSites: true,
		Identity:  redlatch.Identity{Name: name, Host: host, PID: pid, Labels: map[string]string{"region": "eu-west", "version": "2.14.0"}},
	})
	if err != nil {
		d.Close()
		return nil, err
	}
	p.closing = append(p.closing, func() { _ = c.Close(); d.Close() })
	return c, nil
}

// clients are those of the play.
type clients struct {
	billing1, billing2, shipping, packing, invoices, importer, search1, search2, reports, scheduler *redlatch.Client
}

func (p *play) clients() (all clients, err error) {
	for _, one := range []struct {
		c          **redlatch.Client
		name, host string
		pid        int
	}{
		{&all.billing1, "billing", "web-1", 4121},
		{&all.billing2, "billing", "web-2", 3987},
		{&all.shipping, "shipping", "dock-3", 812},
		{&all.packing, "packing", "dock-4", 1066},
		{&all.invoices, "invoices", "batch-1", 2204},
		{&all.importer, "importer", "batch-1", 2390},
		{&all.search1, "search", "web-1", 4177},
		{&all.search2, "search", "web-2", 4012},
		{&all.reports, "reports", "batch-2", 577},
		{&all.scheduler, "scheduler", "batch-2", 402},
	} {
		c, openErr := p.client(one.name, one.host, one.pid)
		err = errors.Join(err, openErr)
		*one.c = c
	}
	return all, err
}

// begin has the clients begin. What they do then goes on until the play is closed.
func (p *play) begin() error {
	c, err := p.clients()
	if err != nil {
		return err
	}
	scheduler, err := c.scheduler.Lock("leader:scheduler").Acquire(p.ctx)
	if err != nil {
		return err
	}
	if _, err := c.reports.Lock("reports:nightly", redlatch.Lease(15*time.Minute)).Acquire(scheduler.Context()); err != nil {
		return err
	}

	// Orders: who ships one has its stock while it waits for it, and whoever packs
	// waits for the stock.
	orders := "orders:42"
	p.repeat(c.billing1.Lock(orders), 5*time.Second, nil)
	p.repeat(c.billing2.Lock(orders), 3*time.Second, nil)
	p.repeat(c.invoices.Lock(orders), 4*time.Second, nil)
	p.repeat(c.shipping.Lock("stock:sku-1138"), time.Second, func(ctx context.Context) {
		_ = c.shipping.Lock(orders).Do(ctx, func(ctx context.Context) error { return pause(ctx, 4*time.Second) })
	})
	p.repeat(c.packing.Lock("stock:sku-1138"), 2*time.Second, nil)
	p.repeat(c.billing1.FairLock("customers:1815"), 6*time.Second, nil)
	p.repeat(c.packing.FairLock("customers:1815"), 7*time.Second, nil)

	// The catalogue is read by many, and written by one that waits for them.
	prices := "catalog:prices"
	for _, reader := range []*redlatch.Client{c.search1, c.search2, c.billing2} {
		if _, err := reader.ReadWriteLock(prices).Read().Acquire(p.ctx); err != nil {
			return err
		}
	}
	p.repeat(c.importer.ReadWriteLock(prices).Write(), time.Second, nil)

	return errors.Join(p.semaphore(c), p.lose(c.invoices.Lock("invoices:1187")))
}

// semaphore has a semaphore used beside the locks.
func (p *play) semaphore(c clients) error {
	calls := func(client *redlatch.Client) *semaphore.Expirable {
		return semaphore.NewExpirable(client, "payments:calls", 0)
	}
	if _, err := calls(c.billing1).TrySetPermits(p.ctx, 4); err != nil {
		return err
	}
	if _, err := locktest.Each(calls(c.billing1).Acquire(p.ctx, 2)); err != nil {
		return err
	}
	if _, err := calls(c.billing2).Acquire(p.ctx, 1); err != nil {
		return err
	}
	return nil
}

// lose has a hold lost, as when somebody deletes its key, and acquired once more.
func (p *play) lose(lock *redlatch.Lock) error {
	hold, err := lock.Acquire(p.ctx)
	if err != nil {
		return err
	}
	rdb, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{p.addr}, ForceSingleClient: true})
	if err != nil {
		return err
	}
	defer rdb.Close()
	if err := rdb.Do(p.ctx, rdb.B().Del().Key(lock.Name()).Build()).Error(); err != nil {
		return err
	}
	<-hold.Context().Done() // the holder is told
	if cause := context.Cause(hold.Context()); !errors.Is(cause, redlatch.ErrLost) {
		return fmt.Errorf("the hold that was to be lost ends by %w", cause)
	}
	_, err = lock.Acquire(p.ctx)
	return err
}

// repeat has a caller hold a lock for a while, over and over, and do something
// with it first.
func (p *play) repeat(lock *redlatch.Lock, during time.Duration, first func(context.Context)) {
	p.work.Go(func() {
		for p.ctx.Err() == nil {
			_ = lock.Do(p.ctx, func(ctx context.Context) error {
				if first != nil {
					first(ctx)
				}
				return pause(ctx, during)
			})
		}
	})
}

// pause is work that takes a while.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// inFullSwing is what the list shows by the time at which it is photographed.
var inFullSwing = []struct{ what, expression string }{
	{"the loss", `document.querySelector(".tiles .bad")`},
	{"what there is to see", `(() => {
		const cell = (name, label) => {
			const row = [...document.querySelectorAll("tbody tr")].find((tr) => tr.querySelector("th a").textContent === name);
			return row.querySelector("[data-label='" + label + "']").textContent;
		};
		return cell("orders:42", "Waiting") >= 3 && parseFloat(cell("orders:42", "Longest wait")) > 5 && cell("stock:sku-1138", "Waiting") >= 1 &&
			cell("catalog:prices", "Waiting") === "1" && parseFloat(cell("orders:42", "Held for")) >= 1 && parseFloat(cell("leader:scheduler", "Held for")) > 40;
	})()`},
}

var ordersOnScreen = regexp.MustCompile(`orders:42 .* [1-9]\.\ds +[3-9] +([5-9]|\d\d)\.\ds +0 *\n`)

// inFullSwingOnScreen is the same on the terminal.
func inFullSwingOnScreen(text string) bool { return ordersOnScreen.MatchString(text) }
