package connect

import (
	"cmp"
	"errors"
	"net"
	"net/url"
	"strconv"
	"strings"
)

const (
	serverPort   = "6379"
	sentinelPort = "26379"
)

// The errors below never quote the URL. Whoever forgets to encode a '/', '?'
// or '#' in a password moves the rest of it into the path, the query or the
// fragment, so that any part may be a secret.
var (
	errMalformed = errors.New("connect: the URL cannot be read; the form is redis://user:password@host:6379/0, " +
		"with / ? # @ and % in the password written as %2F %3F %23 %40 and %25")
	errStrayAt = errors.New("connect: the URL has an '@' after the host; " +
		"write / ? # @ and % in a password, and @ in a path, as %2F %3F %23 %40 and %25")
	errPort = errors.New("connect: a port is not between 1 and 65535")
)

// Parse reads a URL of one of the forms
//
//	redis://[user:password@]host[:6379][/db]                  also valkey://
//	rediss://...                                              TLS; also valkeys://, and so below
//	unix://[user:password@]/path/to.sock[?db=1]               also redis+uds://, valkey+uds://
//	redis+sentinel://[user:password@]host[:26379],.../master[/db]
//	redis+cluster://[user:password@]host[:6379],...
//
// and the last two also as go-redis and rueidis write them,
//
//	redis://[user:password@]host:26379[/db]?master_name=m&addr=host:26379&...      also master_set
//	redis://[user:password@]host[:6379]?addr=host[:6379]&...
//
// A user name without a password is the password of the default user, as in
// redis-cli and Redisson: redis://secret@host and redis://:secret@host mean the
// same. User and password are those of the servers. Sentinels have their own. A
// missing host is localhost. The query may have
//
//	db                 the database, instead of the path
//	protocol           2 or 3: the version of the Redis protocol; default 3
//	client_name        what CLIENT LIST shows
//	dial_timeout       to make one connection: 500ms, 3s, or a number of seconds; default 3s
//	read_timeout       for one script, likewise; the longer of these two counts
//	write_timeout
//	addr               another node or sentinel; may be given several times
//	master_name        the sentinels' name for the primary; also master_set
//	sentinel_username  for the sentinels
//	sentinel_password
//	password           for the servers, instead of the one before the host
//	client_cache       0: there is none
//	max_retries        0: nothing is sent twice
//
// and with TLS
//
//	cacert             a file with the authorities' certificates, in PEM
//	cert, key          files with the client's certificate and its key, in PEM
//	sni                the name that the server's certificate must have
//	tls_min            1.2 or 1.3; default 1.2
//	skip_verify        true or false: do not verify the server's certificate
//
// and nothing else: an unknown key is an error. Parse reads no file.
func Parse(rawURL string) (Settings, error) {
	p, err := parse(rawURL)
	if err != nil {
		return Settings{}, err
	}
	return p.Settings, nil
}

// Redact returns the URL in a form that may be shown: scheme, addresses, master
// name and database, with *** in place of the credentials. For a URL that Parse
// refuses it returns only "(unreadable URL)".
func Redact(rawURL string) string {
	s, err := Parse(rawURL)
	if err != nil {
		return "(unreadable URL)"
	}
	return s.String()
}

// A parsed URL is the settings, and whether they are of a Unix socket.
type parsed struct {
	Settings
	socket bool
}

// kinds are the schemes. "s" as the end of what stands before the "+" is TLS.
var kinds = map[string]struct {
	mode   Mode
	socket bool
}{
	"": {}, "sentinel": {mode: Sentinel}, "cluster": {mode: Cluster}, "uds": {socket: true},
}

func parse(rawURL string) (*parsed, error) {
	scheme, rest, ok := strings.Cut(rawURL, "://")
	if !ok {
		// Not even the part before a colon is safe to show: user:secret@host.
		return nil, errors.New("connect: the URL has no scheme; write redis://host:6379")
	}
	p := &parsed{}
	if err := p.scheme(scheme); err != nil {
		return nil, err
	}
	// A list of hosts is more than net/url can read: it gets one in its place.
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	authority, rest := rest[:end], rest[end:]
	at := strings.LastIndexByte(authority, '@') + 1
	userinfo, hosts := authority[:at], authority[at:]
	u, err := url.Parse("redis://" + userinfo + "host" + rest)
	if err != nil {
		return nil, errMalformed
	}
	if strings.Contains(u.EscapedPath()+u.RawQuery+u.EscapedFragment(), "@") {
		return nil, errStrayAt
	}
	if strings.Contains(rest, "#") { // an empty fragment, too: it may be the end of a password
		return nil, errMalformed
	}
	if u.User != nil {
		user := u.User.Username()
		if password, has := u.User.Password(); has {
			p.User, p.Password = user, Secret(password)
		} else {
			p.Password = Secret(user)
		}
	}
	q, err := p.query(u)
	if err != nil {
		return nil, err
	}
	if err := p.place(hosts, u.EscapedPath(), q); err != nil {
		return nil, err
	}
	return p, nil
}

// scheme reads what a URL's scheme says.
func (p *parsed) scheme(scheme string) error {
	base, suffix, plus := strings.Cut(scheme, "+")
	kind, known := kinds[suffix]
	if plus && suffix == "" {
		known = false
	}
	switch base {
	case "redis", "valkey":
	case "rediss", "valkeys":
		p.TLS = &TLS{}
		known = known && !kind.socket
	case "unix":
		known = scheme == base
		kind.socket = true
	default:
		known = false
	}
	if !known {
		return errors.New("connect: unknown scheme; it can be redis, rediss, valkey or valkeys, " +
			"each also with +sentinel or +cluster behind it, or unix, redis+uds or valkey+uds")
	}
	p.Mode, p.socket = kind.mode, kind.socket
	return nil
}

// place reads where the servers are, which the path and the query have a say in.
func (p *parsed) place(hosts, path string, q *query) error {
	if p.socket {
		return p.socketAt(hosts, path, q)
	}
	port := serverPort
	list := append(strings.Split(hosts, ","), q.addrs...)
	switch {
	case p.Mode == Sentinel:
		port = sentinelPort
	case p.Mode == Single && q.master != "":
		p.Mode = Sentinel
		port = "" // libraries disagree
	case p.Mode == Single && len(q.addrs) > 0:
		p.Mode = Cluster
	case p.Mode == Single && len(list) > 1:
		return errors.New("connect: the URL has several hosts; write redis+sentinel:// or redis+cluster:// for what they are")
	case p.Mode == Cluster && q.master != "":
		return errors.New("connect: a cluster has no master name")
	}
	for _, host := range list {
		if host == "" && len(list) > 1 {
			return errors.New("connect: there is an empty host among those of the URL")
		}
		address, err := p.address(host, port)
		if err != nil {
			return err
		}
		p.Addresses = append(p.Addresses, address)
	}

	path = strings.TrimPrefix(path, "/")
	if p.Mode == Sentinel {
		var err error
		if path, err = p.master(path, port != "", q); err != nil {
			return err
		}
	}
	return p.databaseIn(path, q)
}

// databaseIn reads what is left of the path, which the query may say, too.
func (p *parsed) databaseIn(path string, q *query) error {
	if path == "" {
		return nil
	}
	db, err := database(path)
	if err != nil {
		return errors.New("connect: the path of the URL does not end with a database number, as in redis://host:6379/1")
	}
	if q.db && p.Database != db {
		return errors.New("connect: the database in the path and the one in ?db= differ")
	}
	p.Database = db
	return nil
}

// socketAt reads the path of a Unix socket.
func (p *parsed) socketAt(hosts, path string, q *query) error {
	plain, err := url.PathUnescape(path)
	switch {
	case err != nil:
		return errMalformed
	case hosts != "" || plain == "":
		return errors.New("connect: the URL of a Unix socket has three slashes and a path: unix:///run/redis.sock")
	case len(q.addrs) > 0 || q.master != "":
		return errors.New("connect: there is neither a cluster nor a Sentinel behind a Unix socket")
	}
	p.Addresses = []string{plain}
	return nil
}

// master finds the name of the master, at the beginning of the path if that
// form of URL has it there, and returns the rest of the path.
func (p *parsed) master(path string, inPath bool, q *query) (string, error) {
	name := ""
	if inPath {
		first, rest, _ := strings.Cut(path, "/")
		plain, err := url.PathUnescape(first)
		if err != nil {
			return "", errMalformed
		}
		name, path = plain, rest
	}
	switch {
	case name == "" && q.master == "":
		return "", errors.New("connect: the URL has no master name; the form is redis+sentinel://host:26379/mymaster")
	case name != "" && q.master != "" && name != q.master:
		return "", errors.New("connect: the master name in the path and the one in the query differ")
	}
	p.MasterName = cmp.Or(name, q.master)
	return path, nil
}

// address reads host, host:port, [ip6] or [ip6]:port.
func (p *parsed) address(text, port string) (string, error) {
	u, err := url.Parse("redis://" + text)
	if err != nil || u.Host == "" && text != "" || u.User != nil || u.Path != "" || u.RawQuery != "" || u.Fragment != "" {
		return "", errMalformed
	}
	host := cmp.Or(u.Hostname(), "localhost")
	if strings.ContainsAny(host, ",[]") || strings.Contains(host, ":") && !strings.HasPrefix(text, "[") {
		return "", errMalformed
	}
	if u.Port() != "" {
		port = u.Port()
	}
	if port == "" {
		return "", errors.New("connect: write the ports of sentinels in this form of URL: libraries disagree about what a missing one means; " +
			"in redis+sentinel://host/mymaster it is 26379")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", errPort
	}
	return net.JoinHostPort(host, port), nil
}

func database(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 31)
	return int(n), err
}
