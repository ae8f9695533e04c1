package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/dashboard"
	"github.com/redlatch/redlatch/internal/overview"
	"github.com/redlatch/redlatch/internal/promtext"
)

// defaultExporterListen is where exporter listens. The port is nobody's.
const defaultExporterListen = "127.0.0.1:7638"

func (a *app) exporterCommand() *cobra.Command {
	o := pageOptions{interval: duration{Duration: time.Second}, metrics: true}
	cmd := &cobra.Command{
		Use:   "exporter [PATTERN]",
		Short: "Tell Prometheus who holds locks, who waits, and what was lost",
		Long: `Serve metrics for Prometheus, at /metrics, of the locks and synchronizers whose names
match PATTERN, a glob: how many are held, how many callers wait and for how long, what
was lost, and how many clients answer. No program has to be changed for that. The
metrics are what Redis has stored, and what the clients say of themselves.

The metrics are counted by prefixes of names: by what stands before the first colon,
or by those of --prefixes. docs/production.md lists the metrics, and has alert rules.

For a scrape exporter goes over all keys of the server and asks all clients, once a
second at most, and once for all scrapes that come within --interval. While the server
does not answer, at the start, too, redlatch_server_up is 0.

exporter prints the address to scrape. It has no authentication. So exporter listens
where only this machine can reach it. With --unauthenticated it listens on other
addresses, too, and everybody who can reach the address sees the prefixes of the names
of locks. Ctrl-C ends exporter, with 0.`,
		Example: `  redlatch exporter
  redlatch exporter --listen :7638 --unauthenticated --prefixes orders:,jobs:nightly-`,
		Args: cobra.MaximumNArgs(1),
	}
	o.flags(cmd, defaultExporterListen)
	cmd.Flags().Lookup("interval").Usage = "for how long scrapes show the same look, at least 1s"
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		addr, err := o.check()
		if err != nil {
			return err
		}
		ctx, stop := untilTold(cmd.Context())
		defer stop()
		return a.export(ctx, addr, &o, patternOf(args))
	}
	return cmd
}

// export serves metrics until ctx ends.
func (a *app) export(ctx context.Context, addr *net.TCPAddr, o *pageOptions, pattern string) error {
	e := &exporter{app: a, o: o, pattern: pattern}
	defer e.close()
	err := e.try(ctx)
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil && !isOutage(err):
		return err
	case err != nil:
		a.ui.note("the server does not answer: %v; asking again until it does", err)
		connecting, end := context.WithCancel(ctx)
		var work sync.WaitGroup
		defer work.Wait()
		defer end()
		work.Go(func() { e.keepConnecting(connecting) })
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", e)
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "redlatch exporter: see /metrics\n")
	})
	return a.serve(ctx, addr, "metrics", mux, e.endPages)
}

// An exporter is the metrics, also while there is no client yet.
type exporter struct {
	*app

	o       *pageOptions
	pattern string
	live    atomic.Pointer[live]
	why     atomic.Pointer[string] // there is none yet
}

// live are the metrics of a client.
type live struct {
	http.Handler

	pages    *dashboard.Handler
	closeAll func()
}

// connect makes the client, and looks whether it may ask.
func (e *exporter) connect(ctx context.Context) error {
	client, closeAll, err := e.client(redlatch.Config{OutageTimeout: askTimeout, SlowWait: overview.Standing})
	if err != nil {
		return err
	}
	if err := e.mayLook(ctx, client, e.pattern); err != nil {
		closeAll()
		return err
	}
	pages := e.pages(client, e.o, e.pattern)
	e.live.Store(&live{pages.Metrics(e.o.prefixes...), pages, closeAll})
	return nil
}

// try is connect, and keeps for those who scrape why it has failed.
func (e *exporter) try(ctx context.Context) error {
	err := e.connect(ctx)
	if err != nil {
		why := "the server could not be asked yet: " + e.ui.safe(err.Error())
		e.why.Store(&why)
	}
	return err
}

const (
	connectAgain = time.Second      // after which a server that does not answer is tried again
	mostRefused  = 30 * time.Second // after which one is that refuses, at the latest: servers count wrong passwords, and log them
)

// keepConnecting tries again until there is a client. What is wrong is told when
// it is something else.
func (e *exporter) keepConnecting(ctx context.Context) {
	said, pause := "", connectAgain
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		err := e.try(ctx)
		if pause = min(2*pause, mostRefused); isOutage(err) {
			pause = connectAgain
		}
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			e.ui.note("the server answers")
			return
		case !isOutage(err) && err.Error() != said:
			said = err.Error()
			e.ui.note("%s", said)
		}
	}
}

func (e *exporter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if l := e.live.Load(); l != nil {
		l.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Content-Type", promtext.ContentType)
	_, _ = io.WriteString(w, promtext.Page(overview.Down(&overview.Histories{}), *e.why.Load())) //nolint:gosec // it is no HTML
}

// endPages ends whatever is being asked for a scrape.
func (e *exporter) endPages() {
	if l := e.live.Load(); l != nil {
		l.pages.Close()
	}
}

func (e *exporter) close() {
	if l := e.live.Load(); l != nil {
		l.pages.Close()
		l.closeAll()
	}
}
