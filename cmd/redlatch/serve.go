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
	interval := duration{Duration: 5 * time.Second}
	listen, open := defaultListen, false
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

While a page is open and visible, serve goes over all keys of the server and asks
all clients, once for all pages. If the server goes away, serve waits for it, and
/readyz beside the pages has the status 503 and says what is wrong. Ctrl-C ends
serve, with 0.`,
		Example: `  redlatch serve
  redlatch serve --listen 127.0.0.1:0 --interval 2s 'orders:*'`,
		Args: cobra.MaximumNArgs(1),
	}
	cmd.Flags().Var(&interval, "interval", "how long to wait after one look for the next, at least 1s")
	cmd.Flags().StringVar(&listen, "listen", defaultListen, "the address of the pages; with the port 0, any free port")
	cmd.Flags().BoolVar(&open, "unauthenticated", false, "let --listen be an address that other machines can reach: everybody who can reach it sees the pages")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		pattern := patternOf(args)
		if interval.Duration < time.Second {
			return tooOften(interval)
		}
		addr, err := listenAddress(listen, open)
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
		for _, err := range admin.New(client).Locks(ctx, pattern) { // a server that is not there, or refuses us, is no page
			if ctx.Err() != nil {
				return nil
			}
			if err != nil {
				return a.serverFailure(err)
			}
			break
		}
		pages := dashboard.New(client, dashboard.Options{Pattern: pattern, Interval: interval.Duration, Server: a.shownAddress(), Mask: a.ui.mask})
		defer pages.Close()
		mux := http.NewServeMux()
		mux.Handle("/readyz", dashboard.Health(client, a.ui.mask))
		mux.Handle("/", pages)
		return a.serve(ctx, addr, mux, pages.Close)
	}
	return cmd
}

// listenAddress returns the address that --listen says, if only this machine can reach it, or its
// user does not mind.
func listenAddress(listen string, open bool) (*net.TCPAddr, error) {
	addr, err := net.ResolveTCPAddr("tcp", listen)
	if err != nil {
		return nil, usage("--listen %s: %w; write it as 127.0.0.1:7637", listen, err)
	}
	if !open && !addr.IP.IsLoopback() {
		return nil, &failure{
			code: exitUsage, err: fmt.Errorf("--listen %s can be reached from other machines, and the pages have no authentication", listen),
			hint: "mount the package dashboard in a program that has authentication, or add --unauthenticated: then everybody who can reach the address sees the names of all locks and who uses them",
		}
	}
	return addr, nil
}

// serve has the pages shown until ctx ends, and then ends those that are open.
func (a *app) serve(ctx context.Context, addr *net.TCPAddr, pages http.Handler, end func()) error {
	listener, err := net.ListenTCP("tcp", addr)
	if err != nil {
		hint := ""
		if errors.Is(err, syscall.EADDRINUSE) {
			hint = "another program has that address: choose one with --listen, such as 127.0.0.1:0 for any free port"
		}
		return &failure{code: exitUnavailable, err: err, hint: hint}
	}
	defer listener.Close()
	handler := pages
	if addr.IP.IsLoopback() {
		handler = ownHost(pages)
	}
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: time.Minute, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: log.New(noted{a.ui}, "", 0),
	}
	if _, err := fmt.Fprintf(a.ui.out, "http://%s/\n", listener.Addr()); err != nil {
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

// ownHost refuses requests for another host than this machine: a page of another site may have its
// name lead to this address, and would read the pages as if they were its own.
func ownHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isOwnHost(r.Host) {
			http.Error(w, "this is redlatch serve, for this machine alone: open it as http://127.0.0.1 or http://localhost, with its port", http.StatusMisdirectedRequest)
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
