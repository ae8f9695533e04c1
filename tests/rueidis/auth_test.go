package rueidis_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/redlatchrueidis"
)

// Whoever is not let in has executed nothing, and is told why.
func TestNotLetIn(t *testing.T) {
	t.Parallel()
	for _, kind := range testserver.Kinds() {
		s := testserver.Start(t, kind, "--requirepass", "secret")
		for password, code := range map[string]string{"": "NOAUTH", "wrong": "WRONGPASS", "secret": ""} {
			opt := options(s.Addr())
			opt.Password = password
			_, err := newDriver(t, opt).Run(t.Context(), newScript(t, "return 1"), nil, nil)
			var re *driver.RunError
			switch {
			case code == "" && err == nil:
			case !errors.As(err, &re) || re.Outcome != driver.NotExecuted || re.Code != code:
				t.Errorf("%s, password %q: %v, want that it was not executed: %s", kind, password, err, code)
			}
		}
	}
}

// A server that refuses the handshake may quote it.
func TestAQuotedPasswordIsNotShown(t *testing.T) {
	t.Parallel()
	opt := options(testserver.Quoting(t))
	opt.Password = "hunter2"
	d, err := redlatchrueidis.New(opt)
	if err == nil {
		t.Cleanup(func() { _ = d.Close() })
		_, err = d.Run(t.Context(), newScript(t, "return 1"), nil, nil)
	}
	if err == nil || !strings.Contains(err.Error(), "***") {
		t.Errorf("%v", err)
	}
	if reply := (*rueidis.RedisError)(nil); !errors.As(err, &reply) {
		t.Errorf("%#v", err)
	}
	for ; err != nil; err = errors.Unwrap(err) {
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%v", err)
		}
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	s := testserver.Start(t, testserver.Redis)
	cert, pool := certificate(t)
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS13})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer l.Close()
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { forward(c, s) })
		}
	})
	opt := options(l.Addr().String())
	opt.TLSConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS13}
	d, err := redlatchrueidis.New(opt)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	succeeds(t, d)
	confirmed := make(chan driver.Notice, 10)
	stop := d.Subscribe("channel", false, func(n driver.Notice) { confirmed <- n })
	select {
	case <-confirmed:
	case <-time.After(time.Minute):
		t.Error("the subscription was not confirmed")
	}
	stop()

	opt.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS13} // does not know the certificate
	fails(t, newDriver(t, opt), driver.NotExecuted)
}

func forward(c net.Conn, s *testserver.Server) {
	defer c.Close()
	up, err := net.Dial("tcp", s.Addr())
	if err != nil {
		return
	}
	defer up.Close()
	go func() {
		_, _ = io.Copy(c, up)
		c.Close()
	}()
	_, _ = io.Copy(up, c)
}

// certificate makes a key pair for 127.0.0.1, and the pool that trusts it.
func certificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// Credentials that are asked for may be others next time, and nothing was executed
// by whoever got none.
func TestCredentialsThatRotate(t *testing.T) {
	t.Parallel()
	s := testserver.Start(t, testserver.Redis, "--requirepass", "secret")
	var mu sync.Mutex
	var password string
	var sealed error
	set := func(p string, err error) {
		mu.Lock()
		defer mu.Unlock()
		password, sealed = p, err
	}
	opt := options(s.Addr())
	opt.AuthCredentialsFn = func(rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) {
		mu.Lock()
		defer mu.Unlock()
		return rueidis.AuthCredentials{Password: password}, sealed
	}
	d := newDriver(t, opt)
	for _, c := range []struct {
		password string
		err      error
		want     string
	}{{"wrong", nil, "WRONGPASS"}, {"", errors.New("sealed"), "no credentials: sealed"}, {"secret", nil, ""}, {"wrong", nil, ""}} {
		set(c.password, c.err)
		_, err := d.Run(t.Context(), newScript(t, "return 1"), nil, nil)
		var re *driver.RunError
		switch {
		case c.want == "" && err == nil: // the connection is there
		case !errors.As(err, &re) || re.Outcome != driver.NotExecuted || re.Code != "" || !redlatch.IsRetryable(err) || !strings.Contains(err.Error(), c.want):
			t.Errorf("%+v: %v", c, err)
		}
	}
	s.MustDo("CLIENT", "KILL", "TYPE", "normal")
	script := newScript(t, "return 1")
	requests := []*driver.Request{{Script: script}, {Script: script}}
	batcher, ok := d.(driver.Batcher)
	if !ok {
		t.Fatal("it runs no batches")
	}
	for end := time.Now().Add(time.Minute); ; {
		batcher.RunBatch(requests)
		var re *driver.RunError
		if errors.As(requests[1].Err, &re) && strings.Contains(re.Error(), "WRONGPASS") {
			if re.Outcome != driver.NotExecuted || re.Code != "" {
				t.Errorf("of a batch: %v, %q", re, re.Code)
			}
			return
		}
		if time.Now().After(end) {
			t.Fatal("the connection was not made again")
		}
	}
}
