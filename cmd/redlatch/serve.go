package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/dashboard"
	"github.com/redlatch/redlatch/internal/overview"
)

// defaultListen is where serve listens. The port is nobody's.
const defaultListen = "127.0.0.1:7637"

func (a *app) serveCommand() *cobra.Command {
	o := pageOptions{interval: duration{Duration: 5 * time.Second}}
	cmd := &cobra.Command{
		Use:   "serve [PATTERN]",
		Short: "Show locks live in a browser: what top shows, as web pages",
		Long: `Show the locks and synchronizers whose names match PATTERN, a glob, on web pages
that keep themselves up to date: who holds each of them and for how long, who waits,
what was lost, and who may be waiting for one another. Each lock has a page with its
holders and waiters, a drawing of who waits for whom, and its state at each look.
Nothing on the pages releases or changes anything.

serve prints the address to open. The pages have no authentication. So serve listens
where only this machine can reach it, and every user of this machine can. With
--unauthenticated it listens on other addresses, too, and everybody who can reach
the address sees the names of all locks and who uses them. To show the pages to more
people, mount the package dashboard in a program that knows who they are.

With --metrics serve also has the metrics of redlatch exporter, at /metrics.

While a page is open and visible, serve goes over all keys of the server and asks
all clients, once for all pages. If the server goes away, serve waits for it, and
/readyz beside the pages has the status 503 and says what is wrong. Ctrl-C ends
serve, with 0.`,
		Example: `  redlatch serve
  redlatch serve --listen 127.0.0.1:0 --interval 2s 'orders:*'`,
		Args: cobra.MaximumNArgs(1),
	}
	o.flags(cmd, defaultListen)
	cmd.Flags().BoolVar(&o.metrics, "metrics", false, "serve metrics for Prometheus, too, at /metrics: those of redlatch exporter")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		pattern := patternOf(args)
		addr, err := o.check()
		if err != nil {
			return err
		}
		client, closeAll, err := a.client(redlatch.Config{OutageTimeout: askTimeout, SlowWait: overview.Standing})
		if err != nil {
			return err
		}
		defer closeAll()
		ctx, stop := untilTold(cmd.Context())
		defer stop()
		if err := a.mayLook(ctx, client, pattern); err != nil || ctx.Err() != nil {
			return err
		}
		pages := a.pages(client, &o, pattern)
		defer pages.Close()
		mux := http.NewServeMux()
		mux.Handle("/readyz", dashboard.Health(client, a.ui.mask))
		mux.Handle("/", pages)
		if o.metrics {
			mux.Handle("/metrics", pages.Metrics(o.prefixes...))
		}
		return a.serve(ctx, addr, "", mux, pages.Close)
	}
	return cmd
}

// pageOptions are what serve and exporter are told.
type pageOptions struct {
	listen   string
	open     bool
	interval duration
	metrics  bool
	prefixes list
}

func (o *pageOptions) flags(cmd *cobra.Command, listen string) {
	f := cmd.Flags()
	f.Var(&o.interval, "interval", "how long to wait after one look for the next, at least 1s")
	f.StringVar(&o.listen, "listen", listen, "the address to listen on; with the port 0, any free port")
	f.BoolVar(&o.open, "unauthenticated", false, "let --listen be an address that other machines can reach: everybody who can reach it sees what is served")
	f.Var(&o.prefixes, "prefixes", "what the names begin with that the metrics tell apart, instead of what stands before a colon; all others count as \"other\"")
}

// check returns the address to listen on, if what was told fits together.
func (o *pageOptions) check() (*net.TCPAddr, error) {
	switch {
	case o.interval.Duration < time.Second:
		return nil, tooOften(o.interval)
	case len(o.prefixes) > 0 && !o.metrics:
		return nil, usage("--prefixes is about metrics: add --metrics")
	}
	return listenAddress(o.listen, o.open)
}

// mayLook says why a client cannot list locks: a server that is not there, or
// refuses us. That ctx has ended is no reason.
func (a *app) mayLook(ctx context.Context, client *redlatch.Client, pattern string) error {
	for _, err := range admin.New(client).Locks(ctx, pattern) {
		if err != nil && ctx.Err() == nil {
			return a.serverFailure(err)
		}
		break
	}
	return nil
}

func (a *app) pages(client *redlatch.Client, o *pageOptions, pattern string) *dashboard.Handler {
	return dashboard.New(client, dashboard.Options{Pattern: pattern, Interval: o.interval.Duration, Server: a.shownAddress(), Mask: a.ui.mask})
}

// listenAddress returns the address that --listen says, if only this machine can
// reach it, or its user does not mind.
func listenAddress(listen string, open bool) (*net.TCPAddr, error) {
	addr, err := net.ResolveTCPAddr("tcp", listen)
	if err != nil {
		return nil, usage("--listen %s: %w; write it as 127.0.0.1:7637", listen, err)
	}
	if !open && !addr.IP.IsLoopback() {
		return nil, &failure{
			code: exitUsage, err: fmt.Errorf("--listen %s can be reached from other machines, and there is no authentication", listen),
			hint: "mount the package dashboard in a program that has authentication, or add --unauthenticated: then everybody who can reach the address sees the names of all locks and who uses them",
		}
	}
	return addr, nil
}

// serve lets a handler answer until ctx ends, and prints where. Before it waits
// for requests that are being answered, it calls end.
func (a *app) serve(ctx context.Context, addr *net.TCPAddr, path string, handler http.Handler, end func()) error {
	listener, err := net.ListenTCP("tcp", addr)
	if err != nil {
		hint := ""
		if errors.Is(err, syscall.EADDRINUSE) {
			hint = "another program has that address: choose one with --listen, such as 127.0.0.1:0 for any free port"
		}
		return &failure{code: exitUnavailable, err: err, hint: hint}
	}
	defer listener.Close()
	if addr.IP.IsLoopback() {
		handler = ownHost(handler)
	}
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: time.Minute, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: log.New(noted{a.ui}, "", 0),
	}
	if _, err := fmt.Fprintf(a.ui.out, "http://%s/%s\n", listener.Addr(), path); err != nil {
		return written(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return &failure{code: exitSystem, err: err}
	case <-ctx.Done():
	}
	end() // so that no page keeps the server
	ending, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := server.Shutdown(ending); err != nil {
		_ = server.Close() // a browser that does not read
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return &failure{code: exitSystem, err: err}
	}
	return nil
}

// ownHost refuses requests for another host than this machine: a page of another
// site may have its name lead to this address, and would read the pages as if they
// were its own.
func ownHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isOwnHost(r.Host) {
			http.Error(w, "this is redlatch, for this machine alone: open it as http://127.0.0.1 or http://localhost, with its port", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func isOwnHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// noted are the lines of the HTTP server's log.
type noted struct{ ui *ui }

func (n noted) Write(line []byte) (int, error) {
	n.ui.note("%s", strings.TrimSuffix(string(line), "\n"))
	return len(line), nil
}
