package connect

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/redlatch/redlatch"
)

// Settings say where the server is and how to talk to it. [Parse] makes them
// from a URL, and package redissonyaml from Redisson's configuration file. They
// can be changed before a client is opened. They never show a password, in
// whatever way they are printed.
type Settings struct {
	Mode Mode

	// Addresses are those of the server, of the sentinels, or of some nodes of the
	// cluster, each as host:port. An address that begins with a slash is the path
	// of a Unix socket.
	Addresses []string

	// MasterName is the name that sentinels have for the primary.
	MasterName string

	// Database is the number of the database.
	Database int

	// User and Password are for the servers. An empty User is the default user.
	User     string
	Password Secret

	// SentinelUser and SentinelPassword are for the sentinels, which have users
	// of their own.
	SentinelUser     string
	SentinelPassword Secret

	// If Credentials is set, it is called for each connection, and replaces User
	// and Password. SentinelCredentials replaces SentinelUser and SentinelPassword
	// in the same way. Both can be the same function.
	Credentials, SentinelCredentials CredentialsFunc

	// ClientName is what CLIENT LIST shows. Empty means the program, its host and
	// its process: "billing@host-7:4121".
	ClientName string

	// RESP2 asks for the older version of the protocol.
	RESP2 bool

	// TLS is nil for connections without encryption.
	TLS *TLS

	// DialTimeout limits how long it takes to make one connection. Timeout limits
	// one script, including the time to connect before it, so a DialTimeout that
	// is longer than Timeout has no use. Zero means 3 seconds. If
	// Config.WatchdogTimeout is below 9 seconds, a zero Timeout means a third of
	// that, which is the longest that is allowed.
	DialTimeout, Timeout time.Duration

	// Refresh is how often the topology of a cluster, or of what sentinels watch,
	// is read again when nothing has happened. Zero means the driver's default.
	Refresh time.Duration

	// Config is what Redisson's file says about the client. A URL leaves it
	// zero. A field that the program sets itself, in the Config that it opens a
	// client with, goes before the same field here.
	Config redlatch.Config

	// Warnings say which keys of Redisson's file have no effect, or another one
	// than in Redisson. The client's Logger gets them when it is opened, the
	// harmless ones as one line.
	Warnings []Warning
}

// A Warning is about a key of Redisson's configuration file that has no effect,
// or another effect than in Redisson.
type Warning struct {
	Severity Severity
	Line     int
	Key      string // with the section before it: singleServerConfig.retryAttempts
	Text     string
}

// Severity says what a Warning is worth.
type Severity uint8

// The severities.
const (
	Important Severity = iota // the key may be a mistake, or does something else than in Redisson
	Harmless                  // the key does nothing here, and no lock misses it
)

// String returns "important" or "harmless".
func (severity Severity) String() string {
	switch severity {
	case Important:
		return "important"
	case Harmless:
		return "harmless"
	}
	return fmt.Sprintf("Severity(%d)", uint8(severity))
}

// WarningLines returns a line for each important warning, and then one for all
// harmless ones together, which names their keys. The texts of these say why.
func WarningLines(warnings []Warning) (lines []string) {
	var keys []string
	for _, w := range warnings {
		if w.Severity == Harmless {
			keys = append(keys, fmt.Sprintf("%s (line %d)", w.Key, w.Line))
			continue
		}
		lines = append(lines, w.String())
	}
	if len(keys) > 0 {
		lines = append(lines, "have no effect, and need none: "+strings.Join(keys, ", "))
	}
	return lines
}

// String returns all of it.
func (w Warning) String() string { return fmt.Sprintf("line %d: %s: %s", w.Line, w.Key, w.Text) }

// Mode says how the servers belong together.
type Mode int

// The modes.
const (
	Single   Mode = iota // one server, or the primary at a fixed address
	Sentinel             // a primary that sentinels name
	Cluster              // Redis Cluster
)

// String returns "single", "sentinel" or "cluster".
func (m Mode) String() string {
	switch m {
	case Single:
		return "single"
	case Sentinel:
		return "sentinel"
	case Cluster:
		return "cluster"
	}
	return fmt.Sprintf("Mode(%d)", int(m))
}

// A Secret is shown as three stars by each verb of package fmt, by encoding/json
// and by log/slog.
type Secret string

const stars = "***"

// String hides the secret.
func (secret Secret) String() string {
	if secret == "" {
		return ""
	}
	return stars
}

// Format hides the secret from package fmt, which would otherwise show it in its
// message about a verb that is not for text.
func (secret Secret) Format(f fmt.State, verb rune) {
	fmt.Fprintf(f, fmt.FormatString(f, verb), secret.String())
}

// MarshalText hides the secret from encoders.
func (secret Secret) MarshalText() ([]byte, error) { return []byte(secret.String()), nil }

// String returns the settings as a URL that may be shown: scheme, addresses,
// master name and database, with *** in place of the credentials.
func (s Settings) String() string {
	var b strings.Builder
	db := ""
	if s.Database != 0 {
		db = fmt.Sprintf("/%d", s.Database)
	}
	credentials := ""
	if s.User != "" || s.Password != "" || s.Credentials != nil {
		credentials = stars + "@"
	}
	if s.unix() {
		b.WriteString("unix://" + credentials + noAt((&url.URL{Path: s.Addresses[0]}).EscapedPath()))
		if db != "" {
			b.WriteString("?db=" + db[1:])
		}
		return b.String()
	}
	b.WriteString("redis")
	if s.TLS != nil {
		b.WriteByte('s')
	}
	switch s.Mode {
	case Sentinel:
		b.WriteString("+sentinel")
		db = "/" + noAt(url.PathEscape(s.MasterName)) + db
	case Cluster:
		b.WriteString("+cluster")
	}
	var hosts []string
	for _, address := range s.Addresses {
		hosts = append(hosts, strings.TrimPrefix((&url.URL{Host: address}).String(), "//"))
	}
	b.WriteString("://" + credentials + strings.Join(hosts, ",") + db)
	return b.String()
}

// noAt escapes what package url leaves as it is, and Parse refuses behind the
// hosts.
func noAt(path string) string { return strings.ReplaceAll(path, "@", "%40") }

// MarshalText returns what String returns.
func (s Settings) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// unix reports whether the server is behind a Unix socket.
func (s Settings) unix() bool { return len(s.Addresses) == 1 && strings.HasPrefix(s.Addresses[0], "/") }

// timeout is for one script, with the connecting before it.
func (s Settings) timeout() time.Duration {
	if third := s.Config.WatchdogTimeout / 3; s.Timeout == 0 && third > 0 {
		return min(DefaultTimeout, third)
	}
	return cmp.Or(s.Timeout, DefaultTimeout)
}

// DefaultTimeout is what zero means for DialTimeout and Timeout.
const DefaultTimeout = 3 * time.Second

// secrets are what an error about opening must not contain.
func (s Settings) secrets() []string {
	return []string{string(s.Password), string(s.SentinelPassword), s.User, s.SentinelUser}
}
