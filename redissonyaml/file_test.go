package redissonyaml

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/connect"
)

func variables(name string) (string, bool) {
	v, ok := map[string]string{
		"HOST": "h", "EMPTY": "", "NODES": `["redis://h1:1", "redis://h2:2"]`, "PASS": "hunter2-Tr0ub4dor", "redis.port": "7000",
		"LOOKS": "a${x:-}b${y}",
	}[name]
	return v, ok
}

func TestParse(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		want       connect.Settings
		warnings   []string // key or key and part of the text, in the order of the lines
	}{
		{
			name: "single, as in Redisson's manual",
			text: `
singleServerConfig:
  idleConnectionTimeout: 10000
  connectTimeout: 10000
  timeout: 3000
  retryAttempts: 4
  retryDelay: !<org.redisson.config.EqualJitterDelay> {baseDelay: PT1S, maxDelay: PT2S}
  reconnectionDelay: !<org.redisson.config.EqualJitterDelay> {baseDelay: PT0.1S, maxDelay: PT10S}
  subscriptionsPerConnection: 5
  clientName: null
  address: "redis://127.0.0.1:6379"
  subscriptionConnectionMinimumIdleSize: 1
  subscriptionConnectionPoolSize: 50
  connectionMinimumIdleSize: 24
  connectionPoolSize: 64
  database: 0
  dnsMonitoringInterval: 5000
password: null
threads: 16
nettyThreads: 32
codec: !<org.redisson.codec.Kryo5Codec> {}
transportMode: "NIO"
`,
			want: connect.Settings{Addresses: []string{"127.0.0.1:6379"}, DialTimeout: 3 * time.Second, Timeout: 3 * time.Second},
			warnings: []string{
				"singleServerConfig.idleConnectionTimeout", "singleServerConfig.connectTimeout: is lowered to 3s",
				"singleServerConfig.retryAttempts", "singleServerConfig.retryDelay", "singleServerConfig.reconnectionDelay",
				"singleServerConfig.subscriptionsPerConnection", "singleServerConfig.subscriptionConnectionMinimumIdleSize",
				"singleServerConfig.subscriptionConnectionPoolSize", "singleServerConfig.connectionMinimumIdleSize",
				"singleServerConfig.connectionPoolSize: has no effect: all requests", "singleServerConfig.dnsMonitoringInterval",
				"threads: has no effect: it is about Java", "nettyThreads", "codec: is none that redlatch has", "transportMode",
			},
		},
		{
			name: "what is set",
			text: `{"singleServerConfig": {"address": "redis://h:1", "database": 3, "clientName": "me", "timeout": 1500, "connectTimeout": 500,
				"username": "old", "password": "old"},
				"username": "ann", "password": "secret", "lockWatchdogTimeout": 12000, "fairLockWaitTimeout": 300000,
				"checkLockSyncedSlaves": off, "protocol": "RESP2",
				"nameMapper": {"class": "org.redisson.config.DefaultNameMapper"}}`,
			want: connect.Settings{
				Addresses: []string{"h:1"}, Database: 3, ClientName: "me", Timeout: 1500 * time.Millisecond, DialTimeout: 500 * time.Millisecond,
				User: "ann", Password: "secret", RESP2: true, Config: redlatch.Config{WatchdogTimeout: 12 * time.Second, Redisson: redlatch.Redisson{FairLockWaitTimeout: 5 * time.Minute}, Acks: redlatch.AckOff},
			},
		},
		{
			name: "credentials in the address, and what is behind it",
			text: "singleServerConfig:\n  address: valkey://ann:p%40@h:1/7",
			want: connect.Settings{Addresses: []string{"h:1"}, User: "ann", Password: "p@"}, warnings: []string{"singleServerConfig.address: what stands behind the port"},
		},
		{
			name:     "a + that Redisson takes for a space",
			text:     "clusterServersConfig: {nodeAddresses: ['redis://a+b%2Bc@h:1', 'redis://a+b%2Bc@h:2']}",
			want:     connect.Settings{Mode: connect.Cluster, Addresses: []string{"h:1", "h:2"}, Password: "a+b+c"},
			warnings: []string{"clusterServersConfig.nodeAddresses: has a + before the host"},
		},
		{
			name: "lone userinfo",
			text: "singleServerConfig: {address: 'redis://secret@[::1]:1', password: other, username: ann}",
			want: connect.Settings{Addresses: []string{"[::1]:1"}, User: "ann", Password: "secret"},
		},
		{
			name: "unix socket",
			text: "singleServerConfig:\n  address: redis+uds:///run/redis.sock\n  database: 1",
			want: connect.Settings{Addresses: []string{"/run/redis.sock"}, Database: 1},
		},
		{
			name: "master and replicas",
			text: "masterSlaveServersConfig:\n  masterAddress: redis://h:1\n  slaveAddresses: [redis://h:2]\n  readMode: MASTER\ncheckLockSyncedSlaves: true\nslavesSyncTimeout: 700",
			want: connect.Settings{Addresses: []string{"h:1"}, Config: redlatch.Config{Acks: redlatch.AckAny, AckTimeout: 700 * time.Millisecond}},
			warnings: []string{
				"masterSlaveServersConfig.slaveAddresses: has no effect: locks live on primaries", "masterSlaveServersConfig.readMode",
			},
		},
		{
			name: "sentinel",
			text: `
sentinelServersConfig:
  sentinelAddresses:
  - "rediss://h1:1"
  - "valkeys://h2:2"
  masterName: mymaster
  sentinelUsername: bob
  sentinelPassword: other
  password: secret
  database: 2
  scanInterval: 2000
  natMapper: !<org.redisson.config.DefaultNatMapper> {}
  checkSentinelsList: false
sslVerificationMode: CA_ONLY
sslProtocols: [TLSv1.3, TLSv1.2, TLSv1.1]
sslCiphers: [TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, TLS_AES_128_GCM_SHA256]
`,
			want: connect.Settings{
				Mode: connect.Sentinel, Addresses: []string{"h1:1", "h2:2"}, MasterName: "mymaster", Database: 2, Password: "secret",
				SentinelUser: "bob", SentinelPassword: "other", Refresh: 2 * time.Second,
				TLS: &connect.TLS{Verify: connect.VerifyCA, MinVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256}},
			},
			warnings: []string{"sentinelServersConfig.checkSentinelsList", "sslProtocols: only TLSv1.2 and TLSv1.3"},
		},
		{
			name:     "sentinels without a password",
			text:     "sentinelServersConfig: {sentinelAddresses: ['redis://h:1'], masterName: m}\npassword: secret",
			want:     connect.Settings{Mode: connect.Sentinel, Addresses: []string{"h:1"}, MasterName: "m", Password: "secret"},
			warnings: []string{"sentinelServersConfig: has no sentinelPassword"},
		},
		{
			name: "sentinels with a password in the address",
			text: "sentinelServersConfig: {sentinelAddresses: ['redis://a:b@h:1'], masterName: m}\npassword: secret",
			want: connect.Settings{Mode: connect.Sentinel, Addresses: []string{"h:1"}, MasterName: "m", Password: "secret", SentinelUser: "a", SentinelPassword: "b"},
		},
		{
			name: "cluster",
			text: `
clusterServersConfig:
  nodeAddresses: ["redis://h1:1", "redis://h2:2"]
  scanInterval: 7000
  shardedSubscriptionMode: OFF
  readMode: "SLAVE"
  loadBalancer: !<org.redisson.connection.balancer.RoundRobinLoadBalancer> {}
  slotsCoverage: false
useScriptCache: true
`,
			want: connect.Settings{Mode: connect.Cluster, Addresses: []string{"h1:1", "h2:2"}, Refresh: 7 * time.Second, Config: redlatch.Config{Redisson: redlatch.Redisson{PubSub: redlatch.PubSubClassic}}},
			warnings: []string{
				"clusterServersConfig.readMode", "clusterServersConfig.loadBalancer",
				"clusterServersConfig.slotsCoverage: has no effect: the key is unknown here", "useScriptCache",
			},
		},
		{
			name: "key stores, and what is not verified",
			text: "singleServerConfig:\n  address: rediss://h:1\n  sslTruststore: file:/a.jks\n  sslTruststorePassword: x\n  sslEnableEndpointIdentification: false\nsslKeystore: file:/b.p12\nsslCiphers: [TLS_AES_128_GCM_SHA256]",
			want: connect.Settings{
				Addresses: []string{"h:1"},
				TLS:       &connect.TLS{Truststore: "/a.jks", Keystore: "/b.p12", Verify: connect.VerifyCA, MinVersion: tls.VersionTLS13},
			},
			warnings: []string{"singleServerConfig.sslTruststorePassword: has no effect: it is about a Java key store"},
		},
		{
			name: "nothing is verified",
			text: "singleServerConfig:\n  address: rediss://h:1\n  sslVerificationMode: STRICT\nsslVerificationMode: NONE",
			want: connect.Settings{Addresses: []string{"h:1"}, TLS: &connect.TLS{Verify: connect.VerifyNone}},
		},
		{
			name:     "TLS without TLS",
			text:     "singleServerConfig:\n  address: redis://h:1\nsslVerificationMode: NONE",
			want:     connect.Settings{Addresses: []string{"h:1"}},
			warnings: []string{"sslVerificationMode: has no effect, as other keys about SSL"},
		},
		{
			name: "variables",
			text: "singleServerConfig:\n  address: redis://${HOST}:${redis.port:-6379}\n  database: ${DB:-3}\n  clientName: ${EMPTY:-x}${UNSET}\n# ${COMMENT}\npassword: ${PASS}",
			want: connect.Settings{Addresses: []string{"h:7000"}, Database: 3, ClientName: "${UNSET}", Password: "hunter2-Tr0ub4dor"},
			warnings: []string{
				"singleServerConfig.clientName: has a variable that is not set",
			},
		},
		{
			name: "variables with an empty default",
			text: "singleServerConfig:\n  address: redis://${HOST:-}:7000\n  password: \"${NO_PASSWORD:-}\"\n  clientName: ${UNSET:-}${HOST}",
			want: connect.Settings{Addresses: []string{"h:7000"}, ClientName: "h"},
			warnings: []string{
				"singleServerConfig.password: has a variable that is not set and has an empty default",
				"singleServerConfig.clientName: has a variable that is not set and has an empty default",
			},
		},
		{
			name: "variables that say what looks like one",
			text: "singleServerConfig:\n  address: redis://h:1\n  password: \"${LOOKS}\"\n  clientName: ${NAME:-}${LOOKS}${NAME}${LOOKS}",
			want: connect.Settings{Addresses: []string{"h:1"}, Password: "a${x:-}b${y}", ClientName: "a${x:-}b${y}${NAME}a${x:-}b${y}"},
			warnings: []string{
				"singleServerConfig.clientName: has a variable that is not set and has no default",
				"singleServerConfig.clientName: has a variable that is not set and has an empty default",
			},
		},
		{
			name: "a variable with a list",
			text: "clusterServersConfig:\n  nodeAddresses: ${NODES}",
			want: connect.Settings{Mode: connect.Cluster, Addresses: []string{"h1:1", "h2:2"}},
		},
		{
			name: "times",
			text: "singleServerConfig:\n  address: redis://h:1\n  timeout: 20_000\n  connectTimeout: 20000\nlockWatchdogTimeout: 15000\nfairLockWaitTimeout: 1000",
			want: connect.Settings{Addresses: []string{"h:1"}, Timeout: 5 * time.Second, DialTimeout: 5 * time.Second, Config: redlatch.Config{WatchdogTimeout: 15 * time.Second, Redisson: redlatch.Redisson{FairLockWaitTimeout: 5 * time.Second}}},
			warnings: []string{
				"singleServerConfig.timeout: is lowered to 5s", "singleServerConfig.connectTimeout: is lowered to 5s",
				"fairLockWaitTimeout: is raised to 5s",
			},
		},
		{
			name:     "a time that is too long",
			text:     "singleServerConfig:\n  address: redis://h:1\nfairLockWaitTimeout: 86400001",
			want:     connect.Settings{Addresses: []string{"h:1"}, Config: redlatch.Config{Redisson: redlatch.Redisson{FairLockWaitTimeout: 24 * time.Hour}}},
			warnings: []string{"fairLockWaitTimeout: is lowered to 24h0m0s"},
		},
		{
			name: "the longest time",
			text: "singleServerConfig:\n  address: redis://h:1\nfairLockWaitTimeout: 86400000",
			want: connect.Settings{Addresses: []string{"h:1"}, Config: redlatch.Config{Redisson: redlatch.Redisson{FairLockWaitTimeout: 24 * time.Hour}}},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.want.Config.Redisson.Codec = cmp.Or(tc.want.Config.Redisson.Codec, "org.redisson.codec.Kryo5Codec")
			got, err := Parse([]byte(tc.text), variables)
			if err != nil {
				t.Fatal(err)
			}
			warnings := got.Warnings
			got.Warnings = nil
			if !reflect.DeepEqual(got, tc.want) {
				t.Errorf("got  %#v\nwant %#v", got, tc.want)
			}
			for i, w := range warnings {
				if i >= len(tc.warnings) || !strings.HasPrefix(w.Key+": "+w.Text, tc.warnings[i]) {
					t.Errorf("warning %d: %s", i, w)
				}
			}
			if len(warnings) < len(tc.warnings) {
				t.Errorf("missing: %q", tc.warnings[len(warnings):])
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	single := func(keys string) string { return "singleServerConfig: {address: 'redis://h:1', " + keys + "}\n" }
	for _, tc := range []struct{ text, want string }{
		{"", "not a list of keys"},
		{"[1]", "not a list of keys"},
		{"a: b: hunter2", "not YAML"},
		{"a: b\nc: d\ne: f: hunter2", "not YAML, near line 3"},
		{"threads: 1", "names no servers"},
		{"singleServerConfig: null", "names no servers"},
		{"singleServerConfig: 1", "singleServerConfig: is not a list of keys"},
		{"singleServerConfig: {}", "line 1: singleServerConfig: has no address"},
		{single("") + "clusterServersConfig: {}", "line 2: clusterServersConfig: there is one section"},
		{"replicatedServersConfig: {nodeAddresses: ['redis://h:1']}", "replicatedServersConfig: is not supported; give the endpoint"},
		{"singleServerConfig: {address: 'redis://h'}", "singleServerConfig.address: has no port"},
		{"singleServerConfig: {address: 'h:1'}", "singleServerConfig.address: the URL has no scheme"},
		{"singleServerConfig: {address: 'redis+cluster://h:1'}", "singleServerConfig.address: is the address of one server"},
		{"singleServerConfig: {address: ['redis://h:1']}", "singleServerConfig.address: is not a text"},
		{"clusterServersConfig: {nodeAddresses: 'redis://h:1'}", "nodeAddresses: is not a list"},
		{"clusterServersConfig: {nodeAddresses: ['redis://h:1', 'rediss://h:2']}", "with TLS and such without"},
		{"clusterServersConfig: {nodeAddresses: ['redis://a@h:1', 'redis://b@h:2']}", "different users or passwords"},
		{"clusterServersConfig: {nodeAddresses: ['redis+uds:///s']}", "Unix socket"},
		{"clusterServersConfig: {nodeAddresses: ['redis://h:1'], natMap: {a: b}}", "clusterServersConfig.natMap: is not supported"},
		{"clusterServersConfig: {nodeAddresses: ['redis://h:1'], natMapper: !<org.redisson.config.HostNatMapper> {}}", "natMapper: is not supported"},
		{"sentinelServersConfig: {sentinelAddresses: ['redis://h:1']}", "has no masterName"},
		{single("database: x"), "singleServerConfig.database: is not a whole number"},
		{single("database: -1"), "singleServerConfig.database: is not a whole number"},
		{single("timeout: 0"), "singleServerConfig.timeout: is not a whole number between 1"},
		{single("timeout: 99999999999999999999"), "singleServerConfig.timeout"},
		{single("database: 1, database: 2"), "singleServerConfig.database: is given twice"},
		{single("'<<': 1"), "is no name of a key"},
		{single("password: '{aes}hunter2'"), "singleServerConfig.password: is encrypted"},
		{single("") + "lockWatchdogTimeout: 200", "lockWatchdogTimeout: is not a whole number between 300"},
		{single("") + "fairLockWaitTimeout: -5", "fairLockWaitTimeout: is not a whole number between 0"},
		{single("") + "nameMapper: !<com.example.Mapper> {}", "line 2: nameMapper: is a class of Java"},
		{single("") + "nameMapper: !<org.redisson.config.DefaultNameMapper> {prefix: x}", "nameMapper: is a class of Java"},
		{single("") + "commandMapper: !<com.example.DefaultCommandMapper> {}", "commandMapper: is a class of Java"},
		{single("") + "credentialsResolver: !<org.redisson.config.EntraIdCredentialsResolver> {}", "credentialsResolver: is a class of Java"},
		{single("") + "protocol: RESP4", "protocol: is none of RESP2, RESP3"},
		{single("") + "checkLockSyncedSlaves: maybe", "checkLockSyncedSlaves: is none of true, false"},
		{single("") + "sslVerificationMode: SOME", "sslVerificationMode: is none of"},
		{single("") + "sslProtocols: [TLSv1.1]", "sslProtocols: has neither"},
		{single("") + "sslCiphers: [TLS_RSA_WITH_RC4_128_SHA]", "sslCiphers: has a suite"},
		{single("") + "sslCiphers: []", "sslCiphers: is not a list"},
	} {
		s, err := Parse([]byte(tc.text), nil)
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v; want %q", tc.text, err, tc.want)
		}
		if !reflect.DeepEqual(s, connect.Settings{Warnings: s.Warnings}) {
			t.Errorf("%s: settings beside the error: %v", tc.text, s)
		}
	}
	// What is refused is not raised or lowered.
	if s, err := Parse([]byte(single("")+"fairLockWaitTimeout: -5"), nil); err == nil || len(s.Warnings) > 0 {
		t.Errorf("%v, and the warnings %v", err, s.Warnings)
	}
	// All errors at once.
	_, err := Parse([]byte("singleServerConfig: {database: x, timeout: y}\nprotocol: z"), nil)
	var all interface{ Unwrap() []error }
	if !errors.As(err, &all) || len(all.Unwrap()) != 3 {
		t.Errorf("%v", err)
	}
}

// Whatever key a secret is given to, no error and no warning shows it.
func TestRedissonShowsNoSecret(t *testing.T) {
	const secret = "hunter2-Tr0ub4dor"
	lookup := func(string) (string, bool) { return secret, true }
	tables := map[string]map[string]option{"": rootKeys}
	for section, servers := range serverKeys {
		if servers.refused == "" {
			tables[section] = merge(servers.keys, sharedKeys)
		}
	}
	for section, keys := range tables {
		for key := range keys {
			for _, value := range []string{"${X}", "[${X}]", "{class: ${X}}", "redis://h:1?${X}", "redis://h/${X}", "redis://${X}@h:x", "a: ${X}: {", "!<${X}> {}", "${X}\n  ${X}: 1"} {
				text := fmt.Sprintf("%s:\n  %s: %s", section, key, value)
				if section == "" {
					text = fmt.Sprintf("singleServerConfig: {address: 'redis://h:1'}\n%s: %s", key, value)
				}
				s, err := Parse([]byte(text), lookup)
				shown := fmt.Sprint(s, s.Warnings, err)
				if strings.Contains(shown, "hunter2") || strings.Contains(shown, "Tr0ub") {
					t.Errorf("%q shows %s", text, shown)
				}
			}
		}
	}
}

// A codec decides what the values of a group are called, so a file that names one,
// or none, was not without effect.
func TestTheCodecIsCarried(t *testing.T) {
	for text, want := range map[string]string{
		"threads: 1": "org.redisson.codec.Kryo5Codec",
		"codec: !<org.redisson.client.codec.StringCodec> {}":                                       "org.redisson.client.codec.StringCodec",
		"codec: {class: org.redisson.client.codec.LongCodec}":                                      "org.redisson.client.codec.LongCodec",
		"codec: !<org.redisson.codec.JsonJacksonCodec> {}":                                         "org.redisson.codec.JsonJacksonCodec",
		"codec: !<org.redisson.codec.${CODEC:-LZ4Codec}> ''":                                       "org.redisson.codec.LZ4Codec",
		"codec: {class: org.redisson.client.codec.StringCodec, charset: UTF-16}":                   "org.redisson.client.codec.StringCodec with settings",
		"codec: !<org.redisson.codec.CompositeCodec> {mapKeyCodec: !<org.redisson.codec.Kryo> {}}": "org.redisson.codec.CompositeCodec with settings",
		"codec: !<com.example.StringCodec> {}":                                                     "com.example.StringCodec",
		"codec: StringCodec":                                                                       "unknown",
		"codec: 1":                                                                                 "unknown",
		"codec: [a]":                                                                               "unknown",
		"codec: !<hunter2.hunter2-2> {}":                                                           "unknown",
	} {
		s, err := Parse([]byte("singleServerConfig: {address: 'redis://h:1'}\n"+text), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Config.Redisson.Codec; got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
		warned := false
		for _, w := range s.Warnings {
			warned = warned || w.Key == "codec" && w.Severity == connect.Important && w.Line == 2
		}
		if plain := strings.HasPrefix(want, "org.redisson.client.codec.") && !strings.Contains(want, " "); warned == (plain || !strings.HasPrefix(text, "codec")) {
			t.Errorf("%s: the warnings %v", text, s.Warnings)
		}
	}
}

// Ten keys about pools were ten warnings, and nobody saw the one that mattered.
func TestHarmlessWarningsAreOneLine(t *testing.T) {
	s, err := Parse([]byte("singleServerConfig:\n  address: redis://h:1\n  connectionPoolSize: 1\n  timeout: 20000\n  retryAttempts: 3\n  retryAtempts: 3\nthreads: 1"), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"line 4: singleServerConfig.timeout: is lowered", "line 6: singleServerConfig.retryAtempts: has no effect: the key is unknown here", "have no effect, and need none: singleServerConfig.connectionPoolSize (line 3), singleServerConfig.retryAttempts (line 5), threads (line 7)"}
	lines := connect.WarningLines(s.Warnings)
	if len(lines) != len(want) {
		t.Fatalf("%q", lines)
	}
	for i, line := range lines {
		if !strings.HasPrefix(line, want[i]) {
			t.Errorf("%q, want %q", line, want[i])
		}
	}
	if lines := connect.WarningLines(nil); len(lines) > 0 {
		t.Errorf("of no warnings: %q", lines)
	}
}

// docs/connect.md knows every key.
func TestRedissonDocs(t *testing.T) {
	text, err := os.ReadFile("../docs/connect.md")
	if err != nil {
		t.Fatal(err)
	}
	all := []map[string]option{rootKeys, sharedKeys}
	for section, servers := range serverKeys {
		all = append(all, servers.keys, map[string]option{section: {}})
	}
	for key := range merge(all...) {
		if !strings.Contains(string(text), "`"+key+"`") {
			t.Errorf("%s is not documented", key)
		}
	}
}
