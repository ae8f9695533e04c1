package connect

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	client "github.com/redis/rueidis"
)

// A CredentialsFunc says with which credentials a connection logs in, for those
// that change: tokens of a cloud, passwords from a vault. It is asked whenever a
// connection has been made, by several goroutines at once, so it should remember
// what it has been told. An empty username is the default user. The context ends
// when the connection would come too late; who has not answered by then is not
// waited for.
//
// An error is taken for an outage, and so is a server's refusal of the credentials:
// what would have used the connection is not executed, and tried again for as long
// as redlatch.Config.OutageTimeout says; the next connection asks again. The error
// is shown, so it must not contain the credentials.
type CredentialsFunc func(ctx context.Context) (username, password string, err error)

// fixed answers always the same.
func fixed(username string, password Secret) CredentialsFunc {
	return func(context.Context) (string, string, error) { return username, string(password), nil }
}

// logIn makes the client ask the functions. rueidis has no context for that, and
// asks the same function for sentinels and servers; so we ask when we dial, and
// the answer travels with the connection's address.
func (s Settings) logIn(opt *client.ClientOption) {
	if s.Credentials == nil && s.SentinelCredentials == nil {
		return
	}
	servers, sentinels := s.Credentials, s.SentinelCredentials
	if servers == nil {
		servers = fixed(s.User, s.Password)
	}
	if sentinels == nil {
		sentinels = fixed(s.SentinelUser, s.SentinelPassword)
	}
	ofSentinels := &net.Resolver{} // by this we know their dialer again
	opt.Sentinel.Dialer.Resolver = ofSentinels
	limit := cmp.Or(s.DialTimeout, DefaultTimeout)
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
		found, err := f.ask(ctx)
		if err != nil {
			c.Close()
			return nil, err
		}
		return &knownConn{c, knownAddr{c.RemoteAddr(), found}}, nil
	}
	opt.AuthCredentialsFn = func(at client.AuthCredentialsContext) (client.AuthCredentials, error) {
		if known, ok := at.Address.(knownAddr); ok {
			return known.AuthCredentials, nil
		}
		// Somebody has replaced DialCtxFn.
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		return servers.ask(ctx)
	}
}

func dialTCP(ctx context.Context, address string, d *net.Dialer, secure *tls.Config) (net.Conn, error) {
	if secure != nil {
		return (&tls.Dialer{NetDialer: d, Config: secure}).DialContext(ctx, "tcp", address)
	}
	return d.DialContext(ctx, "tcp", address)
}

// ask asks, and waits no longer than ctx lasts, whatever the function does.
func (f CredentialsFunc) ask(ctx context.Context) (client.AuthCredentials, error) {
	type answer struct {
		username, password string
		err                error
	}
	answers := make(chan answer, 1)
	start := time.Now()
	go func() {
		var a answer
		a.username, a.password, a.err = f(ctx)
		answers <- a
	}()
	select {
	case a := <-answers:
		if a.err != nil {
			return client.AuthCredentials{}, &credentialsError{a.err}
		}
		return client.AuthCredentials{Username: a.username, Password: a.password}, nil
	case <-ctx.Done():
		return client.AuthCredentials{}, &credentialsError{fmt.Errorf("no answer within %v", time.Since(start).Round(time.Millisecond))}
	}
}

// A credentialsError keeps the function's error for errors.Is. There is no Unwrap:
// nobody is to take what it says, about another server perhaps, for the answer of
// this one.
type credentialsError struct{ err error }

func (e *credentialsError) Error() string { return "connect: the credentials: " + e.err.Error() }

func (e *credentialsError) Is(target error) bool { return errors.Is(e.err, target) }

// A knownConn is a connection whose credentials are known.
type knownConn struct {
	net.Conn
	address knownAddr
}

func (c *knownConn) RemoteAddr() net.Addr { return c.address }

// knownAddr shows itself as the address only.
type knownAddr struct {
	net.Addr
	client.AuthCredentials
}

// GoString hides the credentials from %#v.
func (a knownAddr) GoString() string { return fmt.Sprintf("%#v", a.Addr) }
