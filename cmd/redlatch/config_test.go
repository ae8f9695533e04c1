package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
)

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A command works with the server, and the watchdog, of Redisson's file.
func TestRunWithConfig(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	file := writeFile(t, "redisson.yaml", "singleServerConfig: {address: 'redis://"+r.Addr()+"', database: 3}\n"+
		"password: ${TEST_PASSWORD}\nlockWatchdogTimeout: 9000\nprotocol: RESP2\nthreads: 3")
	cmd := r.command("run", "x", "--config", file, "-c", "echo $REDLATCH_LEASE_MS; cat")
	cmd.Env = append(environ(), "REDLATCH_URL=redis://nowhere", "TEST_PASSWORD="+password)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	j := start(t, cmd)
	j.says("9000\n")
	if !r.DB(3).Exists("x") {
		t.Error("the lock is not in database 3")
	}
	if ttl := r.DB(3).TTL("x"); ttl > 9*time.Second {
		t.Errorf("the lease is %v", ttl)
	}
	in.Close()
	if code := j.wait(); code != 0 || strings.Contains(j.output(), "redlatch:") {
		t.Errorf("exit %d:\n%s", code, j.output())
	}
}

func TestTLSFlags(t *testing.T) {
	t.Parallel()
	cert, file := selfSigned(t)
	m := miniredis.NewMiniRedis()
	if err := m.StartTLS(&tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	r := &redis{m, "redis://" + m.Addr() + "?protocol=2"}
	for _, tc := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--tls", "--cacert", file, "--sni", "redis.test"}, 0, ""},
		{[]string{"--tls", "--insecure"}, 0, ""},
		{[]string{"--tls", "--sni", "redis.test"}, 69, "unknown authority"},
		{[]string{"--tls", "--cacert", file}, 69, "IP SANs"},
		{[]string{"--tls", "--cacert", file, "--sni", "other.test"}, 69, "redis.test"},
		{nil, 69, ""},
	} {
		res := r.run(t, append([]string{"ls"}, tc.args...)...)
		if res.code != tc.code || !strings.Contains(res.err, tc.want) {
			t.Errorf("%q: %+v; want exit %d and %q", tc.args, res, tc.code, tc.want)
		}
	}
}

// selfSigned makes a certificate for redis.test, and writes it into a file.
func selfSigned(t *testing.T) (pair tls.Certificate, file string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"redis.test"}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	file = writeFile(t, "ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, file
}
