package redissonyaml

import (
	"crypto/tls"
	"maps"
	"regexp"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/connect"
	"github.com/redlatch/redlatch/internal/wire"
)

// An option is what becomes of a key of Redisson's file: it is set, or ignored
// with a reason, or refused with one.
type option struct {
	set      func(*file, *yaml.Node)
	ignored  string
	refused  string
	harmless string // the class that changes nothing, for which refused does not count
}

// The reasons.
const (
	multiplexed = "all requests to a server share one connection, and subscriptions another"
	retried     = "the client retries for redlatch.Config.OutageTimeout, 10 s by default"
	primaries   = "locks live on primaries, and nothing is sent to replicas"
	pinged      = "silent connections are noticed within the timeout, by pings"
	jvm         = "it is about Java"
	otherTypes  = "it is not about locks"
	scripts     = "scripts are always sent by their hash, and renewals in batches of up to 100"
	resolver    = "Go looks host names up at every connection"
	discovered  = "the driver has its own way of finding the servers"
	storeOnly   = "it is about a Java key store"
)

const noClasses = "is a class of Java, which would have to run here"

func ignored(why string, names ...string) map[string]option {
	m := map[string]option{}
	for _, name := range names {
		m[name] = option{ignored: why}
	}
	return m
}

func merge(tables ...map[string]option) map[string]option {
	all := map[string]option{}
	for _, t := range tables {
		maps.Copy(all, t)
	}
	return all
}

// serverKeys are the sections of servers.
var serverKeys = map[string]struct {
	mode    connect.Mode
	keys    map[string]option
	refused string
}{
	"singleServerConfig": {connect.Single, merge(pools, dns, map[string]option{
		"address": {set: oneAddress}, "database": {set: setDatabase},
	}), ""},
	"masterSlaveServersConfig": {connect.Single, merge(pools, dns, replicas, map[string]option{
		"masterAddress": {set: oneAddress}, "database": {set: setDatabase}, "slaveAddresses": {ignored: primaries},
	}), ""},
	"sentinelServersConfig": {connect.Sentinel, merge(pools, dns, replicas, discovery, map[string]option{
		"sentinelAddresses": {set: addresses}, "database": {set: setDatabase}, "scanInterval": {set: refresh},
		"masterName":       {set: func(f *file, v *yaml.Node) { f.MasterName = f.text(v) }},
		"sentinelUsername": {set: func(f *file, v *yaml.Node) { f.SentinelUser = f.text(v) }},
		"sentinelPassword": {set: func(f *file, v *yaml.Node) { f.SentinelPassword = connect.Secret(f.text(v)) }},
	}), ""},
	"clusterServersConfig": {connect.Cluster, merge(pools, dns, replicas, discovery, map[string]option{
		"nodeAddresses": {set: addresses}, "database": {set: setDatabase}, "scanInterval": {set: refresh},
		"shardedSubscriptionMode": {set: func(f *file, v *yaml.Node) {
			if i := f.oneOf(v, "AUTO", "ON", "OFF"); i >= 0 {
				f.Config.Redisson.PubSub = []redlatch.PubSub{redlatch.PubSubAuto, redlatch.PubSubSharded, redlatch.PubSubClassic}[i]
			}
		}},
	}), ""},
	"replicatedServersConfig": {refused: "is not supported; give the endpoint that always leads to the primary in singleServerConfig"},
}

var (
	pools = ignored(multiplexed, "connectionMinimumIdleSize", "connectionPoolSize", "subscriptionConnectionMinimumIdleSize",
		"subscriptionConnectionPoolSize", "masterConnectionMinimumIdleSize", "masterConnectionPoolSize",
		"slaveConnectionMinimumIdleSize", "slaveConnectionPoolSize",
		"slaveSubscriptionConnectionMinimumIdleSize", "slaveSubscriptionConnectionPoolSize")
	dns      = ignored(resolver, "dnsMonitoring", "dnsMonitoringInterval", "dnsMonitoringTimes")
	replicas = ignored(primaries, "loadBalancer", "readMode", "subscriptionMode", "failedSlaveReconnectionInterval",
		"failedSlaveCheckInterval", "failedSlaveNodeDetector", "fallbackLoadingToMaster")
	discovery = merge(ignored(discovered, "checkSentinelsList", "checkSlaveStatusWithSyncing", "sentinelsDiscovery",
		"checkSlotsCoverage", "checkMasterLinkStatus"), map[string]option{
		"natMap":    {refused: "is not supported: the servers must be reachable under the addresses they announce"},
		"natMapper": {refused: "is not supported: the servers must be reachable under the addresses they announce", harmless: "DefaultNatMapper"},
	})

	// bothKeys stand at the top, and in older files in the section of the servers.
	bothKeys = merge(
		ignored(pinged, "tcpKeepAlive", "tcpKeepAliveCount", "tcpKeepAliveIdle", "tcpKeepAliveInterval", "tcpUserTimeout", "keepAlive", "tcpNoDelay"),
		ignored(storeOnly, "sslKeystorePassword", "sslKeystoreType", "sslTruststorePassword", "sslTruststoreType"),
		ignored(jvm, "sslProvider"),
		map[string]option{
			"username": {set: func(f *file, v *yaml.Node) { f.User = f.text(v) }},
			"password": {set: func(f *file, v *yaml.Node) { f.Password = connect.Secret(f.text(v)) }},

			"credentialsResolver": {refused: noClasses + "; write username and password, or set Settings.Credentials", harmless: "DefaultCredentialsResolver"},
			"nameMapper":          {refused: noClasses + ", or the locks have other names; if it puts a prefix before them, leave it out here and set Config.Prefix", harmless: "DefaultNameMapper"},
			"commandMapper":       {refused: noClasses + ", or the commands have other names", harmless: "DefaultCommandMapper"},

			"sslTruststore": {set: func(f *file, v *yaml.Node) {
				f.sslKey = f.key
				f.tls.Truststore = strings.TrimPrefix(f.text(v), "file:")
			}},
			"sslKeystore": {set: func(f *file, v *yaml.Node) { f.sslKey = f.key; f.tls.Keystore = strings.TrimPrefix(f.text(v), "file:") }},
			"sslVerificationMode": {set: func(f *file, v *yaml.Node) {
				f.sslKey = f.key
				if i := f.oneOf(v, "STRICT", "CA_ONLY", "NONE"); i >= 0 {
					f.tls.Verify = []connect.Verification{connect.VerifyAll, connect.VerifyCA, connect.VerifyNone}[i]
				}
			}},
			"sslProtocols":           {set: protocols},
			"sslCiphers":             {set: ciphers},
			"sslKeyManagerFactory":   {refused: noClasses},
			"sslTrustManagerFactory": {refused: noClasses},
		},
	)

	// sharedKeys are those of every section of servers.
	sharedKeys = merge(bothKeys,
		ignored(multiplexed, "idleConnectionTimeout", "subscriptionsPerConnection", "subscriptionTimeout"),
		ignored(retried, "retryAttempts", "retryInterval", "retryDelay", "reconnectionDelay", "reconnectionTimeout", "failedAttempts"),
		ignored(pinged, "pingConnectionInterval", "pingTimeout"),
		map[string]option{
			"timeout": {set: func(f *file, v *yaml.Node) {
				f.Timeout, f.timeoutKey = f.milliseconds(v, 1), f.key
			}},
			"connectTimeout": {set: func(f *file, v *yaml.Node) {
				f.DialTimeout, f.dialKey = f.milliseconds(v, 1), f.key
			}},
			"clientName": {set: func(f *file, v *yaml.Node) { f.ClientName = f.text(v) }},
			"sslEnableEndpointIdentification": {set: func(f *file, v *yaml.Node) {
				f.sslKey = f.key
				if !f.boolean(v) {
					f.tls.Verify = connect.VerifyNone
				}
			}},
		},
	)

	rootKeys = merge(bothKeys,
		ignored(jvm, "threads", "nettyThreads", "executor", "nettyExecutor", "transportMode", "eventLoopGroup", "nettyHook",
			"useThreadClassLoader", "decodeInExecutor", "connectionListener", "lazyInitialization", "valkeyCapabilities",
			"useLinuxNativeEpoll"),
		ignored(resolver, "addressResolverGroupFactory"),
		ignored(otherTypes, "referenceEnabled", "referenceCodecProvider", "redissonReferenceEnabled", "minCleanUpDelay", "maxCleanUpDelay",
			"cleanUpKeysAmount", "reliableTopicWatchdogTimeout", "keepPubSubOrder"),
		ignored(scripts, "useScriptCache", "lockWatchdogBatchSize"),
		map[string]option{
			"codec": {set: setCodec},
			"lockWatchdogTimeout": {set: func(f *file, v *yaml.Node) {
				f.Config.WatchdogTimeout = f.milliseconds(v, 300)
			}},
			"fairLockWaitTimeout": {set: fairWait},
			"checkLockSyncedSlaves": {set: func(f *file, v *yaml.Node) {
				f.Config.Acks = redlatch.AckAuto
				if !f.boolean(v) {
					f.Config.Acks = redlatch.AckOff
				}
			}},
			"slavesSyncTimeout": {set: func(f *file, v *yaml.Node) { f.Config.AckTimeout = f.milliseconds(v, 1) }},
			"protocol":          {set: func(f *file, v *yaml.Node) { f.RESP2 = f.oneOf(v, "RESP2", "RESP3") == 0 }},
		},
	)
)

// defaultCodec is what Redisson has without the key. Older versions have others,
// whose bytes are no text either.
const defaultCodec = "org.redisson.codec.Kryo5Codec"

// className is how the class of a codec looks. Anything else could be a piece of a
// value.
var className = regexp.MustCompile(`^[A-Za-z_]\w{0,100}(\.[A-Za-z_]\w{0,100}){1,10}$`)

// setCodec takes the class that a tag or the key "class" names. A codec with
// settings of its own is another one.
func setCodec(f *file, v *yaml.Node) {
	class, settings := strings.Trim(v.Tag, "!<>"), len(v.Content)
	if v.Kind == yaml.MappingNode && settings > 0 && v.Content[0].Value == "class" {
		class, settings = v.Content[1].Value, settings-2
	}
	switch {
	case !className.MatchString(class):
		class = "unknown"
	case settings > 0:
		class += " with settings"
	}
	if f.Config.Redisson.Codec = class; !wire.PlainCodec(class) {
		f.warn("is none that redlatch has: the values of a redisson.GroupLock are refused, and a redisson.Entry is right only for objects to which Java gives StringCodec; no other lock depends on it")
	}
}

func fairWait(f *file, v *yaml.Node) {
	n := f.number(v, 0, 10*year)
	if n < 0 {
		return
	}
	wait := time.Duration(n) * time.Millisecond
	f.Config.Redisson.FairLockWaitTimeout = min(max(wait, wire.LeastFairWait), wire.MostFairWait)
	switch {
	case wait < wire.LeastFairWait:
		f.warn("is raised to %v: with less Redisson would pass over waiters of redlatch that live", wire.LeastFairWait)
	case wait > wire.MostFairWait:
		f.warn("is lowered to %v, the most that redlatch.Config.Redisson.FairLockWaitTimeout can be", wire.MostFairWait)
	}
}

func oneAddress(f *file, v *yaml.Node) {
	if text := f.text(v); text != "" {
		f.address(text)
	}
}

func addresses(f *file, v *yaml.Node) {
	for _, text := range f.list(v) {
		f.address(text)
	}
}

func setDatabase(f *file, v *yaml.Node) { f.Database = int(max(f.number(v, 0, 1<<31-1), 0)) }

func refresh(f *file, v *yaml.Node) { f.Refresh = f.milliseconds(v, 1) }

// protocols takes the lowest version that is allowed and that is spoken here.
func protocols(f *file, v *yaml.Node) {
	f.sslKey = f.key
	f.tls.MinVersion = 0
	old := false
	for _, name := range f.list(v) {
		version := uint16(0)
		switch name {
		case "TLSv1.3":
			version = tls.VersionTLS13
		case "TLSv1.2":
			version = tls.VersionTLS12
		default:
			old = true
			continue
		}
		if f.tls.MinVersion == 0 || version < f.tls.MinVersion {
			f.tls.MinVersion = version
		}
	}
	switch {
	case f.tls.MinVersion == 0:
		f.fail("has neither TLSv1.2 nor TLSv1.3, and nothing else is spoken here")
	case old:
		f.warn("only TLSv1.2 and TLSv1.3 of these are spoken here")
	}
}

// ciphers takes the suites by their names, which are the same in Java. Those of
// TLS 1.3 cannot be chosen in Go; alone they say that nothing older is wanted.
func ciphers(f *file, v *yaml.Node) {
	f.sslKey = f.key
	known := map[string]*tls.CipherSuite{}
	for _, suite := range tls.CipherSuites() {
		known[suite.Name] = suite
	}
	f.tls.CipherSuites, f.newest = nil, false
	for _, name := range f.list(v) {
		suite := known[name]
		switch {
		case suite == nil:
			f.fail("has a suite that Go does not have, or does not hold for safe")
			return
		case suite.SupportedVersions[0] < tls.VersionTLS13:
			f.tls.CipherSuites = append(f.tls.CipherSuites, suite.ID)
		}
	}
	f.newest = f.tls.CipherSuites == nil
}
