package main

import (
	"cmp"
	"errors"
	"os"
	"time"

	"github.com/spf13/pflag"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/connect"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/wire"
	"github.com/redlatch/redlatch/redissonyaml"
	"github.com/redlatch/redlatch/redlatchrueidis"
)

const defaultURL = "redis://localhost:6379"

// askTimeout is for how long the commands that only ask try to reach the
// server. run waits longer: for it an outage is a kind of waiting.
const askTimeout = 3 * time.Second

// An endpoint is what the command line says about the server, for all commands.
type endpoint struct {
	url    string
	config string // a file of Redisson's
	tls    connect.TLS
	secure bool
	any    bool // --insecure
	outage duration
	prefix string // of the names in Redis
}

// serverFlags are the names of the flags about the server.
var serverFlags = []string{"url", "config", "tls", "cacert", "cert", "key", "sni", "insecure", "outage", "prefix"}

func (s *endpoint) flags(f *pflag.FlagSet) {
	f.StringVar(&s.url, "url", "", "the server, redis://user:password@host:6379/0; docs/cli.md has the other forms")
	f.StringVar(&s.config, "config", "", "Redisson's configuration file, which says where the server is, instead of --url")
	f.BoolVar(&s.secure, "tls", false, "use TLS, as rediss:// does")
	f.StringVar(&s.tls.CAFile, "cacert", "", "TLS: the authorities that are trusted instead of the system's, in PEM")
	f.StringVar(&s.tls.CertFile, "cert", "", "TLS: the client's certificate, in PEM")
	f.StringVar(&s.tls.KeyFile, "key", "", "TLS: the client's key, in PEM")
	f.StringVar(&s.tls.ServerName, "sni", "", "TLS: the name that the server's certificate must have, instead of the host")
	f.Var(&s.outage, "outage", "how long to keep asking a server that does not answer; 0 gives up at once (default: 10s, or 3s for commands that only ask; ls, top, serve and doctor give up when they cannot connect; elect and exporter never do)")
	f.StringVar(&s.prefix, "prefix", os.Getenv("REDLATCH_PREFIX"), "what stands before each NAME in Redis: a program's Config.Prefix")
	f.BoolVar(&s.any, "insecure", false, "TLS: do not verify the server's certificate")
}

// address returns the URL of the server, if no file says it.
func (s *endpoint) address() string {
	return cmp.Or(s.url, os.Getenv("REDLATCH_URL"), os.Getenv("REDIS_URL"), defaultURL)
}

func (s *endpoint) checkPrefix() error {
	if err := wire.CheckPrefix(s.prefix); err != nil {
		return usage("--prefix %w", err)
	}
	return nil
}

// plan returns what the command line, the environment and the file say, and cfg
// before the file. After an error it has no more than the warnings about the file.
func (a *app) plan(cfg redlatch.Config) (connect.Plan, error) {
	s, err := a.parse()
	known := connect.Plan{Settings: connect.Settings{Warnings: s.Warnings}}
	if err != nil {
		return known, err
	}
	if err := a.server.checkPrefix(); err != nil {
		return known, err
	}
	a.ui.hide(string(s.Password), string(s.SentinelPassword)) // users have names that are also those of locks
	if err := a.server.secureSettings(&s); err != nil {
		return known, err
	}
	p, err := s.Plan(cfg)
	if err != nil {
		return known, &failure{code: exitConfig, err: err, hint: tlsHint(s)}
	}
	p.Config.WatchdogTimeout = cmp.Or(p.Config.WatchdogTimeout, watchdog)
	a.shown = s.String()
	return p, nil
}

func (a *app) parse() (connect.Settings, error) {
	if a.server.config == "" {
		s, err := connect.Parse(a.server.address())
		if err != nil {
			return s, usage("%w", err)
		}
		return s, nil
	}
	if a.server.url != "" {
		return connect.Settings{}, usage("--url and --config contradict each other")
	}
	s, err := redissonyaml.ReadFile(a.server.config)
	if err != nil {
		return s, a.configFailure(err)
	}
	return s, nil
}

// configFailure tells of all errors but the last, with which the program ends.
func (a *app) configFailure(err error) error {
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		all := joined.Unwrap()
		for _, e := range all[:len(all)-1] {
			a.ui.note("%v", e)
		}
		err = all[len(all)-1]
	}
	return &failure{code: exitConfig, err: err, hint: "the file is " + a.server.config}
}

// secureSettings adds what the flags say about TLS.
func (s *endpoint) secureSettings(to *connect.Settings) error {
	if s.any {
		s.tls.Verify = connect.VerifyNone
	}
	given := s.any || s.tls.CAFile != "" || s.tls.CertFile != "" || s.tls.KeyFile != "" || s.tls.ServerName != ""
	if to.TLS == nil && !s.secure {
		if given {
			return usage("there are flags for TLS, but TLS is not used: write rediss:// in the URL, or add --tls")
		}
		return nil
	}
	if to.TLS == nil {
		to.TLS = &connect.TLS{}
	}
	t := to.TLS
	t.CAFile, t.ServerName = cmp.Or(s.tls.CAFile, t.CAFile), cmp.Or(s.tls.ServerName, t.ServerName)
	t.CertFile, t.KeyFile = cmp.Or(s.tls.CertFile, t.CertFile), cmp.Or(s.tls.KeyFile, t.KeyFile)
	if s.any {
		t.Verify, t.Truststore = connect.VerifyNone, ""
	}
	return nil
}

func tlsHint(s connect.Settings) string {
	if s.TLS == nil {
		return ""
	}
	return "the files for TLS are those of --cacert, --cert and --key"
}

// shownAddress is the server's, when there is a plan.
func (a *app) shownAddress() string { return a.shown }

// client connects to the server. Call close at the end.
func (a *app) client(cfg redlatch.Config) (client *redlatch.Client, closeAll func(), err error) {
	if a.server.outage.set {
		cfg.OutageTimeout = max(a.server.outage.Duration, time.Millisecond) // 0 would be the default
	}
	cfg.Prefix = a.server.prefix
	p, err := a.plan(cfg) // config check shows the warnings
	if err != nil {
		return nil, nil, err
	}
	a.watchdog = p.Config.WatchdogTimeout
	client, err = p.Open(func() (driver.Redis, error) {
		opt := redlatchrueidis.Options(p)
		// One lock needs one connection, and not half a megabyte to read it.
		opt.PipelineMultiplex = -1
		opt.ReadBufferEachConn, opt.WriteBufferEachConn = 16<<10, 16<<10
		return redlatchrueidis.New(opt)
	})
	if err != nil {
		return nil, nil, a.serverFailure(err)
	}
	return client, func() { _ = client.Close() }, nil // the locks are released or lost; there is nothing left to tell
}
