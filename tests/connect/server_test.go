package connect

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/connect"
	"github.com/redlatch/redlatch/internal/heldport"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/redissonyaml"
	"github.com/redlatch/redlatch/redlatchgoredis"
	"github.com/redlatch/redlatch/redlatchrueidis"
	"github.com/redlatch/redlatch/redlatchvalkey"
)

// An opener is one of the packages that open what settings say.
type opener struct {
	name string
	open func(s connect.Settings, cfg redlatch.Config) (*redlatch.Client, error)
}

var openers = []opener{
	{"goredis", func(s connect.Settings, cfg redlatch.Config) (*redlatch.Client, error) {
		return redlatchgoredis.OpenSettings(s, cfg)
	}},
	{"rueidis", redlatchrueidis.OpenSettings},
	{"valkeygo", redlatchvalkey.OpenSettings},
}

// take takes a lock where the settings say, leaves it, and lists the locks.
func (o opener) take(t *testing.T, s connect.Settings, name string) error {
	t.Helper()
	locks, err := o.open(s, redlatch.Config{})
	if err != nil {
		return err
	}
	defer locks.Close()
	hold, err := locks.Lock(name).TryAcquire(t.Context(), 0)
	if err == nil {
		err = hold.Release(t.Context())
	}
	for _, listing := range admin.New(locks).Locks(t.Context(), name) {
		err = errors.Join(err, listing)
	}
	return err
}

// works takes a lock by the URL; fails wants an error that says what is wrong.
func works(t *testing.T, rawURL string) {
	t.Helper()
	for _, o := range openers {
		if err := o.take(t, patient(settingsOf(t, rawURL)), "connect"); err != nil {
			t.Errorf("%s: %s: %v", o.name, rawURL, err)
		}
	}
}

// patient returns settings with the time that a busy machine takes for what works.
func patient(s connect.Settings) connect.Settings {
	s.Timeout, s.DialTimeout, s.Config.OutageTimeout = 10*time.Second, 10*time.Second, 2*time.Minute
	return s
}

func fails(t *testing.T, rawURL, want string) {
	t.Helper()
	for _, o := range openers {
		if err := o.failure(t, settingsOf(t, rawURL), want); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %s: %v, want an error with %q", o.name, rawURL, err, want)
		}
	}
}

// refuses wants an error that says what is wrong, and that trying again does not
// help.
func refuses(t *testing.T, rawURL, want string) {
	t.Helper()
	for _, o := range openers {
		err := o.take(t, patient(settingsOf(t, rawURL)), "connect")
		if err == nil || !strings.Contains(err.Error(), want) || errors.Is(err, redlatch.ErrUnavailable) || redlatch.IsRetryable(err) {
			t.Errorf("%s: %s: %v, want a refusal with %q", o.name, rawURL, err, want)
		}
	}
}

// brief is how long is tried what cannot work.
const brief = 100 * time.Millisecond

// failure returns the error of one who takes a lock. If it is not what is wanted,
// the machine may have been too busy to find out, and gets more time.
func (o opener) failure(t *testing.T, s connect.Settings, want string) (err error) {
	t.Helper()
	for s.Config.OutageTimeout = brief; s.Config.OutageTimeout < time.Minute; s.Config.OutageTimeout *= 10 {
		if err = o.take(t, s, "connect"); err == nil || strings.Contains(err.Error(), want) {
			break
		}
	}
	return err
}

func settingsOf(t *testing.T, rawURL string) connect.Settings {
	t.Helper()
	s, err := connect.Parse(rawURL)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// eachKind runs a test with each of the servers, side by side.
func eachKind(t *testing.T, f func(t *testing.T, kind testserver.Kind)) {
	t.Helper()
	t.Parallel()
	for _, kind := range testserver.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			f(t, kind)
		})
	}
}

func TestUsersAndDatabases(t *testing.T) {
	eachKind(t, func(t *testing.T, kind testserver.Kind) {
		s := testserver.Start(t, kind, "--requirepass", "secret")
		s.MustDo("ACL", "SETUSER", "ann", "on", ">p/?#@%", "~*", "&*", "+@all")
		at := "@" + s.Addr()
		works(t, "redis://secret"+at)
		works(t, "redis://:secret"+at)
		works(t, "valkey://default:secret"+at)
		works(t, "redis://secret"+at+"?protocol=2")
		works(t, "redis://ann:p%2F%3F%23%40%25"+at+"/3?client_name=me")
		fails(t, "redis://"+s.Addr(), "NOAUTH")
		fails(t, "redis://ann:secret"+at, "WRONGPASS")
		refuses(t, "redis://secret"+at+"/16", "out of range")

		// The lock is where the URL says, and the client has its name.
		settings, err := connect.Parse("redis://secret" + at + "/3?client_name=me")
		if err != nil {
			t.Fatal(err)
		}
		settings = patient(settings)
		for _, o := range openers {
			placed(t, o, s, settings)
		}
	})
}

// placed wants the lock to be where the settings say, and the client to have its
// name.
func placed(t *testing.T, o opener, s *testserver.Server, settings connect.Settings) {
	locks, err := o.open(settings, redlatch.Config{})
	if err != nil {
		t.Fatal(err)
	}
	hold, err := locks.Lock("x").Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.MustDo("SELECT", "3")
	if n := s.MustDo("EXISTS", "x"); n != int64(1) {
		t.Errorf("%s: the lock is not in database 3", o.name)
	}
	if list, _ := s.MustDo("CLIENT", "LIST").(string); !strings.Contains(list, "name=me") {
		t.Errorf("%s: no client is called me in %s", o.name, list)
	}
	if err := errors.Join(hold.Release(t.Context()), locks.Close()); err != nil {
		t.Error(err)
	}
}

func TestUnixSocket(t *testing.T) {
	eachKind(t, func(t *testing.T, kind testserver.Kind) {
		server := testserver.Start(t, kind, "--unixsocket", "a b@c.sock", "--requirepass", "secret")
		path := filepath.Join(server.Dir(), "a b@c.sock")
		escaped := (&url.URL{Path: path}).EscapedPath()
		escaped = strings.ReplaceAll(escaped, "@", "%40")
		works(t, "unix://secret@"+escaped)
		works(t, "redis+uds://default:secret@"+escaped+"?db=2")
		fails(t, "unix://"+escaped, "NOAUTH")
	})
}

func TestTLS(t *testing.T) {
	dir := t.TempDir()
	ca := newAuthority(t, dir, "ca")
	newAuthority(t, dir, "other")
	ca.issue("server", "redis.test")
	ca.issue("client", "client.test")
	file := func(name string) string { return filepath.Join(dir, name) }

	eachKind(t, func(t *testing.T, kind testserver.Kind) {
		if kind == testserver.Redis62 {
			return // ours is built without TLS
		}
		port := heldport.Hold(t)
		testserver.Start(t, kind, "--tls-port", port, "--tls-cert-file", file("server.pem"), "--tls-key-file", file("server.key"),
			"--tls-ca-cert-file", file("ca.pem"), "--tls-auth-clients", "yes", "--tls-protocols", "TLSv1.2")
		at := "rediss://127.0.0.1:" + port + "?"
		client := "&cert=" + file("client.pem") + "&key=" + file("client.key")

		works(t, at+"sni=redis.test&cacert="+file("ca.pem")+client)
		works(t, at+"skip_verify=true"+client)
		fails(t, at+"sni=redis.test&cacert="+file("ca.pem"), "handshake failure")
		fails(t, at+"cacert="+file("ca.pem")+client, "IP SANs")
		fails(t, at+"sni=other.test&cacert="+file("ca.pem")+client, "valid for redis.test")
		fails(t, at+"sni=redis.test&cacert="+file("other.pem")+client, "unknown authority")
		fails(t, at+"sni=redis.test"+client, "unknown authority")
		fails(t, at+"sni=redis.test&tls_min=1.3&cacert="+file("ca.pem")+client, "protocol version")

		s, err := connect.Parse(at + "cacert=" + file("ca.pem") + client)
		if err != nil {
			t.Fatal(err)
		}
		s.TLS.Verify = connect.VerifyCA // whatever the name
		for _, o := range openers {
			s.TLS.CAFile = file("ca.pem")
			if err := o.take(t, patient(s), "connect"); err != nil {
				t.Errorf("%s: %v", o.name, err)
			}
			s.TLS.CAFile = file("other.pem")
			if err := o.failure(t, s, "unknown authority"); err == nil || !strings.Contains(err.Error(), "unknown authority") {
				t.Errorf("%s: a stranger's certificate: %v", o.name, err)
			}
		}
	})
}

func TestTLSFiles(t *testing.T) {
	dir := t.TempDir()
	newAuthority(t, dir, "ca")
	ca, key, empty := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "ca.key"), filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		tls  connect.TLS
		want string
	}{
		{connect.TLS{CAFile: ca, CertFile: ca, KeyFile: key, Truststore: "x.jks", Keystore: "y.p12"}, ""},
		{connect.TLS{CAFile: empty}, "no certificate in PEM"},
		{connect.TLS{CAFile: filepath.Join(dir, "none")}, "certificates of the authorities"},
		{connect.TLS{CertFile: ca}, "go together"},
		{connect.TLS{KeyFile: key}, "go together"},
		{connect.TLS{CertFile: ca, KeyFile: empty}, "client's certificate"},
		{connect.TLS{Truststore: "x.jks"}, "sslTruststore"},
		{connect.TLS{Keystore: "x.jks"}, "sslKeystore"},
		{connect.TLS{MinVersion: 0x0302}, "before 1.2"},
		{connect.TLS{Verify: 7}, "Verification(7)"},
	} {
		_, err := connect.Settings{Addresses: []string{"h:1"}, TLS: &tc.tls}.Plan(redlatch.Config{})
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%+v: %v, want %q", tc.tls, err, tc.want)
		}
	}
}

func TestPlanRefusesWhatContradictsItself(t *testing.T) {
	for _, tc := range []struct {
		s    connect.Settings
		want string
	}{
		{connect.Settings{Addresses: []string{"h:1"}}, ""},
		{connect.Settings{}, "no address"},
		{connect.Settings{Addresses: []string{"h:1", "h:2"}}, "one address"},
		{connect.Settings{Addresses: []string{"h:1"}, Mode: connect.Sentinel}, "name of a master"},
		{connect.Settings{Addresses: []string{"/s"}, Mode: connect.Cluster}, "no cluster behind a Unix socket"},
		{connect.Settings{Addresses: []string{"/s"}, TLS: &connect.TLS{}}, "no TLS through a Unix socket"},
		{connect.Settings{Addresses: []string{"h:1"}, Mode: 7}, "Mode(7)"},
	} {
		if _, err := tc.s.Plan(redlatch.Config{}); tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%v: %v, want %q", tc.s, err, tc.want)
		}
	}
}

func TestSentinelURL(t *testing.T) {
	if testing.Short() {
		t.Skip("a long story, for make check")
	}
	t.Parallel()
	s := testserver.StartSentinels(t, testserver.Redis)
	for _, n := range s.Data {
		n.MustDo("ACL", "SETUSER", "default", "resetpass", ">secret") // connections that are open stay so
	}
	hosts := strings.Join(s.Addrs(), ",")
	works(t, "redis+sentinel://secret@"+hosts+"/"+s.Name+"/2")
	works(t, "redis://secret@"+s.Addrs()[0]+"/2?master_name="+s.Name+"&addr="+s.Addrs()[1])
	fails(t, "redis+sentinel://"+hosts+"/"+s.Name, "NOAUTH")
	for _, o := range openers {
		want := map[string]string{"goredis": "unreachable: redis: nil"}[o.name] // that is how go-redis says it
		if err := o.failure(t, settingsOf(t, "redis+sentinel://secret@"+hosts+"/nobody"), cmp.Or(want, "No such master")); err == nil || !strings.Contains(err.Error(), cmp.Or(want, "No such master")) {
			t.Errorf("%s: of a primary that there is not: %v", o.name, err)
		}
	}
	for _, n := range s.Sentinels {
		n.MustDo("ACL", "SETUSER", "default", "resetpass", ">other")
	}
	works(t, "redis+sentinel://secret@"+hosts+"/"+s.Name+"?sentinel_password=other")
	fails(t, "redis+sentinel://secret@"+hosts+"/"+s.Name, "NOAUTH")
}

func TestClusterURL(t *testing.T) {
	if testing.Short() {
		t.Skip("a long story, for make check")
	}
	t.Parallel()
	c := testserver.StartCluster(t, testserver.Valkey)
	for _, rawURL := range []string{
		"redis+cluster://" + strings.Join(c.Addrs(), ","),
		"valkey+cluster://" + c.Addrs()[5],
		"redis://" + c.Addrs()[4] + "?addr=" + c.Addrs()[0],
	} {
		s, err := connect.Parse(rawURL)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"a", "b", "c", "d"} { // on three primaries
			for _, o := range openers {
				if err := o.take(t, patient(s), name); err != nil {
					t.Errorf("%s: %s: %v", o.name, rawURL, err)
				}
			}
		}
	}
	fails(t, "redis://"+c.Nodes[3].Addr(), "MOVED")
}

// An authority issues certificates and writes them into a directory.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T, dir, name string) *authority {
	t.Helper()
	a := &authority{t: t, dir: dir}
	a.cert, a.key = a.write(name, &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return a
}

func (a *authority) issue(name, host string) {
	a.write(name, &x509.Certificate{
		DNSNames: []string{host}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
}

func (a *authority) write(name string, template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	must := func(err error) {
		a.t.Helper()
		if err != nil {
			a.t.Fatal(err)
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	template.Subject = pkix.Name{CommonName: name}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	must(err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	must(err)
	must(os.WriteFile(filepath.Join(a.dir, name+".pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	must(os.WriteFile(filepath.Join(a.dir, name+".key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), 0o600))
	cert, err := x509.ParseCertificate(der)
	must(err)
	return cert, key
}

// A server that does not know the command quotes it, and the password is one of
// its arguments.
func TestQuotedPassword(t *testing.T) {
	eachKind(t, func(t *testing.T, kind testserver.Kind) {
		s := testserver.Start(t, kind, append(testserver.Open, "--rename-command", "HELLO", "", "--rename-command", "AUTH", "")...)
		for _, rest := range []string{"", "?protocol=2"} {
			for _, o := range openers {
				err := o.failure(t, settingsOf(t, "redis://ann:hunter2@"+s.Addr()+rest), "unknown command")
				if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "unknown command") {
					t.Errorf("%s: %v", o.name, err)
				}
			}
		}
	})
}

func TestOpenRedisson(t *testing.T) {
	if testing.Short() {
		t.Skip("a long story, for make check")
	}
	t.Parallel()
	open := func(text string) (err error) {
		t.Helper()
		s, bad := redissonyaml.Parse([]byte(text), nil)
		if bad != nil {
			t.Fatal(bad)
		}
		s.Config.OutageTimeout = 2 * time.Minute
		for _, o := range openers {
			err = errors.Join(err, o.take(t, s, "redisson"))
		}
		return err
	}
	single := testserver.Start(t, testserver.Valkey, "--requirepass", "secret")
	sentinels := testserver.StartSentinels(t, testserver.Valkey)
	cluster := testserver.StartCluster(t, testserver.Redis)
	urls := func(addrs []string) string { return `["redis://` + strings.Join(addrs, `", "redis://`) + `"]` }
	for _, text := range []string{
		"singleServerConfig: {address: 'redis://" + single.Addr() + "', database: 3}\npassword: secret\nlockWatchdogTimeout: 8000",
		"masterSlaveServersConfig: {masterAddress: 'valkey://secret@" + single.Addr() + "'}\nprotocol: RESP2",
		"sentinelServersConfig: {sentinelAddresses: " + urls(sentinels.Addrs()) + ", masterName: " + sentinels.Name + ", scanInterval: 1000}",
		"clusterServersConfig: {nodeAddresses: " + urls(cluster.Addrs()) + ", scanInterval: 1000}",
	} {
		if err := open(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	if err := open("singleServerConfig: {address: 'rediss://" + single.Addr() + "'}\nsslTruststore: file:/x.jks"); err == nil || !strings.Contains(err.Error(), "sslTruststore") {
		t.Errorf("a Java key store: %v", err)
	}
}
