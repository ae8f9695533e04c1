package redlatchrueidis

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"

	"github.com/redis/rueidis"

	"github.com/redlatch/redlatch/connect"
)

// logIn makes the client ask the functions. rueidis has no context for that, and
// asks the same function for sentinels and servers; so we ask when we dial, and
// the answer travels with the connection's address.
func logIn(s connect.Plan, opt *rueidis.ClientOption) {
	if s.Credentials == nil && s.SentinelCredentials == nil {
		return
	}
	servers, sentinels := s.Credentials, s.SentinelCredentials
	if servers == nil {
		servers = connect.Fixed(s.User, s.Password)
	}
	if sentinels == nil {
		sentinels = connect.Fixed(s.SentinelUser, s.SentinelPassword)
	}
	ofSentinels := &net.Resolver{} // by this we know their dialer again
	opt.Sentinel.Dialer.Resolver = ofSentinels
	limit := s.Dial
	dial := opt.DialCtxFn
	if dial == nil {
		dial = dialTCP
	}
	opt.DialCtxFn = func(ctx context.Context, address string, d *net.Dialer, secure *tls.Config) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		c, err := dial(ctx, address, d, secure)
		if err != nil {
			return nil, err
		}
		f := servers
		if d.Resolver == ofSentinels {
			f = sentinels
		}
		found, err := ask(ctx, f)
		if err != nil {
			_ = c.Close()
			return nil, err
		}
		return &knownConn{c, knownAddr{c.RemoteAddr(), found}}, nil
	}
	opt.AuthCredentialsFn = func(at rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) {
		if known, ok := at.Address.(knownAddr); ok {
			return known.AuthCredentials, nil
		}
		// Somebody has replaced DialCtxFn.
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		return ask(ctx, servers)
	}
}

func dialTCP(ctx context.Context, address string, d *net.Dialer, secure *tls.Config) (net.Conn, error) {
	if secure != nil {
		return (&tls.Dialer{NetDialer: d, Config: secure}).DialContext(ctx, "tcp", address)
	}
	return d.DialContext(ctx, "tcp", address)
}

func ask(ctx context.Context, f connect.CredentialsFunc) (rueidis.AuthCredentials, error) {
	username, password, err := f.Ask(ctx)
	return rueidis.AuthCredentials{Username: username, Password: password}, err
}

// A knownConn is a connection whose credentials are known.
type knownConn struct {
	net.Conn
	address knownAddr
}

func (c *knownConn) RemoteAddr() net.Addr { return c.address }

// knownAddr shows itself as the address only.
type knownAddr struct {
	net.Addr
	rueidis.AuthCredentials
}

// GoString hides the credentials from %#v.
func (a knownAddr) GoString() string { return fmt.Sprintf("%#v", a.Addr) }
