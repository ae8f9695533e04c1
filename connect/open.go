package connect

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	client "github.com/redis/rueidis"

	"github.com/redlatch/redlatch/internal/mask"
	"github.com/redlatch/redlatch/rueidis"
)

// Open connects to the server that the URL names; see [Parse] for its forms. The
// driver belongs to the caller, who closes it after the redlatch.Client that
// uses it.
//
// A server that cannot be reached, or that refuses the credentials, is no error
// here: the driver tries again with every script, and the first has the error.
func Open(rawURL string) (*rueidis.Driver, error) {
	s, err := Parse(rawURL)
	if err != nil {
		return nil, err
	}
	return s.Open()
}

// Open is the function Open for settings. It reads the files of TLS. Each tune
// may change the options before they are used.
func (s Settings) Open(tune ...func(*client.ClientOption)) (*rueidis.Driver, error) {
	opt, err := s.Options()
	if err != nil {
		return nil, err
	}
	for _, f := range tune {
		f(&opt)
	}
	d, err := rueidis.New(opt)
	if err != nil {
		err = mask.Error(err, append(s.secrets(), opt.Password, opt.Username)...)
		return nil, fmt.Errorf("connect: %s: %w", strings.Join(opt.InitAddress, ","), err)
	}
	return d, nil
}

// Check returns the error that Open would return without asking a server: about
// a file that is not there or cannot be read, or settings that contradict each
// other.
func (s Settings) Check() error {
	_, err := s.Options()
	return err
}

// Options returns what Open makes its client with, for who wants one of rueidis
// itself. It reads the files of TLS.
func (s Settings) Options() (client.ClientOption, error) {
	secure, err := s.TLS.config()
	switch {
	case err != nil:
	case len(s.Addresses) == 0:
		err = errors.New("connect: there is no address")
	case s.Mode < Single || s.Mode > Cluster:
		err = fmt.Errorf("connect: the mode is %v", s.Mode)
	case s.Mode == Single && len(s.Addresses) > 1:
		err = errors.New("connect: one server has one address")
	case s.Mode == Sentinel && s.MasterName == "":
		err = errors.New("connect: sentinels need the name of a master")
	case s.TLS != nil && s.unix():
		err = errors.New("connect: there is no TLS through a Unix socket")
	case s.Mode != Single && s.unix():
		err = fmt.Errorf("connect: there is no %v behind a Unix socket", s.Mode)
	}
	if err != nil {
		return client.ClientOption{}, err
	}
	name := cmp.Or(s.ClientName, clientName())
	opt := client.ClientOption{
		InitAddress:      s.Addresses,
		Username:         s.User,
		Password:         string(s.Password),
		SelectDB:         s.Database,
		ClientName:       name,
		TLSConfig:        secure,
		Dialer:           net.Dialer{Timeout: cmp.Or(s.DialTimeout, DefaultTimeout)},
		ConnWriteTimeout: s.timeout(),
		AlwaysRESP2:      s.RESP2,
		// Nothing of redlatch reads through the client's cache, and servers
		// without CLIENT TRACKING (embedded ones, some proxies) refuse it.
		DisableCache: true,
	}
	switch s.Mode {
	case Single:
		// One server it is, whatever it says about slots.
		opt.ForceSingleClient = true
	case Sentinel:
		opt.Sentinel = client.SentinelOption{
			MasterSet: s.MasterName,
			Username:  s.SentinelUser, Password: string(s.SentinelPassword), ClientName: name,
			TLSConfig: secure, TopologyRefreshInterval: s.Refresh,
			// KeepAlive is also the pause between the pings that notice a
			// sentinel that has gone silent.
			Dialer: net.Dialer{Timeout: opt.Dialer.Timeout, KeepAlive: time.Second},
		}
	case Cluster:
		opt.ClusterOption.ShardsRefreshInterval = s.Refresh
	}
	if s.unix() {
		opt.DialCtxFn = func(ctx context.Context, path string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return d.DialContext(ctx, "unix", path)
		}
	}
	s.logIn(&opt)
	return opt, nil
}

// clientName names this process. Servers accept neither spaces nor what cannot be
// printed.
func clientName() string {
	host, _ := os.Hostname() // else it stays unknown
	name := fmt.Sprintf("%s@%s:%d", program(os.Args), host, os.Getpid())
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' {
			return '_'
		}
		return r
	}, name)
}

// program returns the name by which a program was started; "" if that is not known.
func program(args []string) string {
	if len(args) == 0 || args[0] == "" {
		return ""
	}
	return filepath.Base(args[0])
}

// Mask returns text with each secret replaced by ***, for showing texts that
// come from servers: as it is, quoted as Go does, and escaped as in a URL. Empty
// secrets are skipped. Mask a text before anything else is done to it.
func Mask(text string, secrets ...string) string { return mask.Text(text, secrets...) }
