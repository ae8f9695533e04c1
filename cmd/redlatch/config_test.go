package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"slices"
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

const sentinelFile = `
sentinelServersConfig:
  sentinelAddresses: ["rediss://h1:1", "rediss://h2:2"]
  masterName: mymaster
  sentinelPassword: ${TEST_PASSWORD}
  username: ann
  retryAttempts: 3
  timeout: 60000
password: ${TEST_PASSWORD}
lockWatchdogTimeout: 6000
sslProtocols: [TLSv1.3]
nettyThreads: ${TEST_THREADS:-32}
`

func TestConfigCheck(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	file := writeFile(t, "redisson.yaml", sentinelFile)
	check := func(args ...string) result {
		t.Helper()
		cmd := r.command(append([]string{"config", "check"}, args...)...)
		cmd.Env = append(cmd.Env, "TEST_PASSWORD="+password)
		return finish(t, cmd)
	}
	for _, args := range [][]string{{file}, {"--config", file}} {
		res := check(args...)
		if res.code != 0 || res.err != "" {
			t.Errorf("%+v", res)
		}
		contains(t, res.out,
			"url                rediss+sentinel://***@h1:1,h2:2/mymaster\n", "user               ann\n", "password           ***\n",
			"sentinel password  ***\n", "tls                1.3 or newer\n", "timeout            2s\n", "watchdog           6s\n",
			"warning            line 7: sentinelServersConfig.retryAttempts: has no effect: ",
			"warning            line 8: sentinelServersConfig.timeout: is lowered to 2s", "warning            line 12: nettyThreads: ")
	}

	var got configJSON
	if err := json.Unmarshal([]byte(check(file, "-o", "json", "--sni", "name").out), &got); err != nil {
		t.Fatal(err)
	}
	if got.Mode != "sentinel" || got.MasterName != "mymaster" || !slices.Equal(got.Addresses, []string{"h1:1", "h2:2"}) || got.User != "ann" ||
		got.Password != "***" || got.SentinelPassword != "***" || got.Protocol != 3 || got.Timeout != 2000 || got.Watchdog != 6000 || len(got.Warnings) != 3 ||
		got.Warnings[0].Line != 7 || got.Warnings[0].Key != "sentinelServersConfig.retryAttempts" || got.TLS == nil || *got.TLS != (tlsJSON{SNI: "name", MinVersion: "1.3", Verify: "all"}) {
		t.Errorf("%+v", got)
	}
	res := check() // the URL of the environment
	contains(t, res.out, "redis://***@"+r.Addr(), "mode          single", "protocol      2", "tls           no")
}

func TestConfigFails(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	bad := writeFile(t, "bad.yaml", "singleServerConfig: {address: 'redis://:"+password+"@h:x', threads: 1}\nprotocol: "+password+"\nthreads: 1")
	stores := writeFile(t, "stores.yaml", "singleServerConfig: {address: 'rediss://h:1'}\nsslKeystore: file:/x.p12\nsslKeystorePassword: "+password)
	good := writeFile(t, "good.yaml", "singleServerConfig: {address: 'redis://h:1'}")
	for _, tc := range []struct {
		args []string
		code int
		want []string
	}{
		{[]string{"config", "check", bad}, 78, []string{
			"line 1: singleServerConfig.address: the URL cannot be read", "line 2: protocol: is none of", "warning: line 3: threads", bad,
		}},
		{[]string{"ls", "--config", bad}, 78, []string{"singleServerConfig.address", "line 2: protocol"}},
		{[]string{"config", "check", stores}, 78, []string{"sslKeystore: Go cannot read", "--cert"}},
		{[]string{"config", "check", bad + "x"}, 78, []string{"bad.yamlx"}},
		{[]string{"config", "check", good, "--config", good}, 64, []string{"twice"}},
		{[]string{"ls", "--config", good, "--url", r.url}, 64, []string{"contradict"}},
		{[]string{"config", "check", "--url", "redis://:" + password + "/@h"}, 64, []string{"%2F"}},
		{[]string{"ls", "--insecure"}, 64, []string{"--tls"}},
		{[]string{"ls", "--url", "rediss://h", "--cacert", good}, 78, []string{"no certificate in PEM"}},
		{[]string{"ls", "--url", "rediss://h", "--cert", good}, 78, []string{"go together"}},
		{[]string{"ls", "--url", "unix:///s", "--tls"}, 78, []string{"no TLS through"}},
		{[]string{"config", "check", good, "x"}, 64, []string{"at most 1"}},
		{[]string{"demo", "--config", good}, 64, []string{"--config is for the other commands"}},
	} {
		res := r.run(t, tc.args...)
		if res.code != tc.code || res.out != "" {
			t.Errorf("%q: %+v; want exit %d", tc.args, res, tc.code)
		}
		contains(t, res.err, tc.want...)
	}
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

// A file that never ends is refused, not read until there is no memory left.
func TestFilesThatNeverEnd(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	for _, args := range [][]string{
		{"--config", "/dev/zero"},
		{"--tls", "--cacert", "/dev/zero"},
		{"--tls", "--cert", "/dev/zero", "--key", "/dev/zero"},
	} {
		if res := r.run(t, append([]string{"ls"}, args...)...); res.code != exitConfig || !strings.Contains(res.err, "/dev/zero has more than 4 MB") {
			t.Errorf("%q: %+v", args, res)
		}
	}
}
