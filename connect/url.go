package connect

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// timeout is for connecting, and for one script with the connecting before it.
const timeout = 3 * time.Second

const (
	defaultHost = "localhost"
	defaultPort = "6379"
)

// The errors below never quote the URL. Whoever forgets to encode a '/', '?'
// or '#' in a password moves the rest of it into the path, the query or the
// fragment, so that any part may be a secret.
var (
	errMalformed = errors.New("connect: the URL cannot be read; the form is redis://user:password@host:6379/0, " +
		"with / ? # @ and % in the password written as %2F %3F %23 %40 and %25")
	errStrayAt = errors.New("connect: the URL has an '@' after the host; " +
		"write / ? # @ and % in a password, and @ in a path, as %2F %3F %23 %40 and %25")
	errTopology = errors.New("connect: Sentinel and cluster URLs are not supported yet; give the URL of one primary")
)

// Parse reads a URL of one of the forms
//
//	redis://[user:password@]host[:6379][/db]     also valkey://
//	rediss://...                                 TLS 1.2 or newer; also valkeys://
//	unix://[user:password@]/path/to.sock[?db=1]
//
// A user name without a password is the password of the default user, as in
// redis-cli and Redisson: redis://secret@host and redis://:secret@host mean
// the same. A missing host is localhost. The query may have
//
//	db           the database, instead of the path
//	protocol     2 or 3: the version of the Redis protocol; default 3
//	skip_verify  true or false: do not verify the server's certificate (TLS only)
//
// and nothing else. The options ask for one server, without client-side
// caching, with Dialer.Timeout and ConnWriteTimeout of 3 s; lower them for a
// watchdog of less than 9 s.
func Parse(rawURL string) (rueidis.ClientOption, error) {
	t, err := parse(rawURL)
	if err != nil {
		return rueidis.ClientOption{}, err
	}
	return t.option(), nil
}

// Redact returns the URL as it may be shown: scheme, address and database,
// with *** in the place of credentials. Of a URL that Parse refuses it returns
// only "(unreadable URL)".
func Redact(rawURL string) string {
	t, err := parse(rawURL)
	if err != nil {
		return "(unreadable URL)"
	}
	return t.String()
}

// A target is a URL that has been understood.
type target struct {
	scheme     string
	host, port string // empty for a unix socket
	socket     string
	user       string
	password   string
	db         int
	resp2      bool
	skipVerify bool
}

func (t *target) secure() bool { return t.scheme == "rediss" || t.scheme == "valkeys" }

func (t *target) String() string {
	var b strings.Builder
	b.WriteString(t.scheme + "://")
	if t.user != "" || t.password != "" {
		b.WriteString("***@")
	}
	if t.socket != "" {
		b.WriteString(t.socket)
		if t.db != 0 {
			fmt.Fprintf(&b, "?db=%d", t.db)
		}
		return b.String()
	}
	b.WriteString(net.JoinHostPort(t.host, t.port))
	if t.db != 0 {
		fmt.Fprintf(&b, "/%d", t.db)
	}
	return b.String()
}

func (t *target) option() rueidis.ClientOption {
	opt := rueidis.ClientOption{
		Username:         t.user,
		Password:         t.password,
		SelectDB:         t.db,
		Dialer:           net.Dialer{Timeout: timeout},
		ConnWriteTimeout: timeout,
		AlwaysRESP2:      t.resp2,
		// One URL is one server, whatever it says about slots.
		ForceSingleClient: true,
		// Nothing of redlatch reads through the client's cache, and servers
		// without CLIENT TRACKING (embedded ones, some proxies) refuse it.
		DisableCache: true,
	}
	if t.socket != "" {
		opt.InitAddress = []string{t.socket}
		opt.DialCtxFn = func(ctx context.Context, path string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return d.DialContext(ctx, "unix", path)
		}
		return opt
	}
	opt.InitAddress = []string{net.JoinHostPort(t.host, t.port)}
	if t.secure() {
		opt.TLSConfig = &tls.Config{
			ServerName:         t.host,
			MinVersion:         tls.VersionTLS12,
			InsecureSkipVerify: t.skipVerify, //nolint:gosec // asked for, by name, in the URL
		}
	}
	return opt
}

func parse(rawURL string) (*target, error) {
	scheme, rest, ok := strings.Cut(rawURL, "://")
	if !ok {
		// Not even the part before a colon is safe to show: user:secret@host.
		return nil, errors.New("connect: the URL has no scheme; write redis://host:6379")
	}
	switch scheme {
	case "redis", "rediss", "valkey", "valkeys", "unix":
	case "redis+sentinel", "redis+cluster", "rediss+sentinel", "rediss+cluster", "sentinel":
		return nil, errTopology
	default:
		return nil, errors.New("connect: unknown scheme; it can be redis, rediss, valkey, valkeys or unix")
	}
	if authority, _, _ := strings.Cut(rest, "/"); strings.Contains(authority[strings.LastIndex(authority, "@")+1:], ",") {
		return nil, errTopology
	}
	u, err := url.Parse(rawURL)
	if err != nil || u.Opaque != "" {
		return nil, errMalformed
	}
	if strings.Contains(u.EscapedPath()+u.RawQuery+u.EscapedFragment(), "@") {
		return nil, errStrayAt
	}
	if u.Fragment != "" {
		return nil, errMalformed
	}

	t := &target{scheme: scheme}
	if u.User != nil {
		user := u.User.Username()
		if password, has := u.User.Password(); has {
			t.user, t.password = user, password
		} else {
			t.password = user
		}
	}
	pathDB, err := t.place(u)
	if err != nil {
		return nil, err
	}
	if err := t.query(u); err != nil {
		return nil, err
	}
	if pathDB >= 0 {
		if u.Query().Has("db") && t.db != pathDB {
			return nil, errors.New("connect: the database in the path and the one in ?db= differ")
		}
		t.db = pathDB
	}
	return t, nil
}

// place reads where the server is. It returns the database in the path, or -1.
func (t *target) place(u *url.URL) (db int, err error) {
	if t.scheme == "unix" {
		if u.Host != "" || u.Path == "" {
			return -1, errors.New("connect: a unix URL has three slashes and a path: unix:///run/redis.sock")
		}
		t.socket = u.Path
		return -1, nil
	}
	t.host, t.port = u.Hostname(), u.Port()
	if t.host == "" {
		t.host = defaultHost
	}
	if t.port == "" {
		t.port = defaultPort
	}
	if n, err := strconv.ParseUint(t.port, 10, 16); err != nil || n == 0 {
		return -1, errors.New("connect: the port is not between 1 and 65535")
	}
	switch u.Path {
	case "", "/":
		return -1, nil
	}
	n, err := database(u.Path[1:])
	if err != nil {
		return -1, errors.New("connect: the path of the URL is not a database number, as in redis://host:6379/1")
	}
	return n, nil
}

func database(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 31)
	return int(n), err
}

func (t *target) query(u *url.URL) error {
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return errMalformed
	}
	keys := make([]string, 0, len(q))
	for key := range q {
		keys = append(keys, key)
	}
	slices.Sort(keys) // the same URL gets the same error every time
	for _, key := range keys {
		value := q.Get(key)
		switch key {
		case "db":
			if t.db, err = database(value); err != nil {
				return errors.New("connect: db in the URL is not a database number")
			}
		case "protocol":
			if value != "2" && value != "3" {
				return errors.New("connect: protocol in the URL is neither 2 nor 3")
			}
			t.resp2 = value == "2"
		case "skip_verify":
			if t.skipVerify, err = strconv.ParseBool(value); err != nil {
				return errors.New("connect: skip_verify in the URL is neither true nor false")
			}
			if !t.secure() {
				return errors.New("connect: skip_verify is for rediss and valkeys URLs: there is no certificate to verify")
			}
		case "addr", "master_name", "master_set":
			return errTopology
		default:
			if strings.Trim(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_") != "" {
				key = "..." // no option is called like that; it may be a piece of a password
			}
			return fmt.Errorf("connect: unknown key %q in the URL's query; there are db, protocol and skip_verify", key)
		}
		if len(q[key]) > 1 {
			return fmt.Errorf("connect: %s is given twice in the URL", key)
		}
	}
	return nil
}
