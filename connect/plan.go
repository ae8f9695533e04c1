package connect

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/mask"
)

// A Plan has settings that fit together, with the files of TLS read and the
// defaults filled in. The packages of drivers make the options of their client
// from it. A program with a client library of its own can do the same. Its Config
// is the whole one of the client.
type Plan struct {
	Settings
	Secure *tls.Config   // nil for connections in the clear
	Name   string        // what CLIENT LIST is to show
	Dial   time.Duration // bounds the making of one connection
	Script time.Duration // bounds one script, with the connecting before it
	Unix   bool          // the address is the path of a Unix socket
}

// Plan reads the files of TLS, and refuses settings that contradict each other. It
// sends nothing to a server. What cfg leaves zero is as s.Config says.
func (s Settings) Plan(cfg redlatch.Config) (Plan, error) {
	s.Config = s.complete(cfg)
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
		return Plan{}, err
	}
	return Plan{
		Settings: s, Secure: secure, Name: cmp.Or(s.ClientName, clientName()),
		Dial: cmp.Or(s.DialTimeout, DefaultTimeout), Script: s.timeout(), Unix: s.unix(),
	}, nil
}

// refused returns the error of a client library that refuses the options, without
// the credentials that the error may contain.
func (plan Plan) refused(err error) error {
	return fmt.Errorf("connect: %s: %w", strings.Join(plan.Addresses, ","), mask.Error(err, plan.secrets()...))
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

// program returns the name by which a program was started; "" if that is not
// known.
func program(args []string) string {
	if len(args) == 0 || args[0] == "" {
		return ""
	}
	return filepath.Base(args[0])
}

// Mask returns text with each secret replaced by ***. It is for showing texts
// that come from servers. It finds a secret as it is, quoted as Go quotes it,
// and escaped as in a URL. Empty secrets are skipped. Mask a text before
// anything else is done to it.
func Mask(text string, secrets ...string) string { return mask.Text(text, secrets...) }
