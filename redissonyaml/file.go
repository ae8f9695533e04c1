package redissonyaml

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/connect"
	"github.com/redlatch/redlatch/internal/bounded"
)

// ReadFile reads a file as [Parse] does. Variables are those of the environment.
func ReadFile(name string) (connect.Settings, error) {
	content, err := bounded.ReadFile(name, bounded.Text)
	if err != nil {
		return connect.Settings{}, fmt.Errorf("redissonyaml: %w", err)
	}
	return Parse(content, os.LookupEnv)
}

// Parse reads the content of Redisson's configuration file, in YAML or JSON, as
// far as locks need it. A key that has no effect here gets one of
// Settings.Warnings, which has a severity. If the locks would not be the same
// without a key, or could not be reached, the key is an error, which names it. All
// errors are returned as one, joined, and then the Settings have the warnings
// only.
//
// As in Redisson, ${NAME} and ${NAME:-default} stand for what lookup returns. A
// Java program asks its environment and its properties there, and a Go program
// most often uses os.LookupEnv. A variable that is not set and has no default
// stays as it is. With a nil lookup no variable is set. ${NAME:-} stands for
// nothing if NAME is not set, with a warning: Redisson does not take it for a
// variable, and would use that text itself, even as a password.
//
// Parse knows singleServerConfig, masterSlaveServersConfig (only the master,
// because redlatch never talks to replicas), sentinelServersConfig and
// clusterServersConfig, and refuses replicatedServersConfig. Settings.Config has
// the lockWatchdogTimeout, the codec (Redisson's Kryo5Codec if the file names
// none), and everything else that belongs to the client and not to the connection.
// Java's key stores are not read: see [connect.TLS].
//
// No error and no warning contains a value of the file.
func Parse(content []byte, lookup func(name string) (string, bool)) (connect.Settings, error) {
	f := &file{unset: marks{bare: "$" + rand.Text(), empty: "$" + rand.Text()}}
	var doc yaml.Node
	if err := yaml.Unmarshal(f.resolve(content, lookup), &doc); err != nil {
		return connect.Settings{}, syntaxError(err)
	}
	if len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		return connect.Settings{}, errors.New("redissonyaml: Redisson's file is not a list of keys and values")
	}
	f.read(doc.Content[0])
	slices.SortStableFunc(f.Warnings, func(a, b connect.Warning) int { return cmp.Compare(a.Line, b.Line) })
	if len(f.errs) > 0 {
		return connect.Settings{Warnings: f.Warnings}, errors.Join(f.errs...)
	}
	return f.Settings, nil
}

var variable = regexp.MustCompile(`\$\{([\w.]+)(?::-(.*?))?\}`)

// resolve puts in the variables, before the file is understood, as Redisson
// does: what a variable says can be a list. It marks those that nobody has set, as
// what a variable says can also look like one.
func (f *file) resolve(content []byte, lookup func(string) (string, bool)) []byte {
	return variable.ReplaceAllFunc(content, func(text []byte) []byte {
		m := variable.FindSubmatch(text)
		if lookup != nil {
			if value, ok := lookup(string(m[1])); ok {
				return []byte(value)
			}
		}
		switch {
		case len(m[2]) > 0:
			return m[2]
		case bytes.HasSuffix(text, []byte(":-}")):
			return []byte(f.unset.empty)
		default:
			return slices.Concat([]byte(f.unset.bare), text)
		}
	})
}

var line = regexp.MustCompile(`line (\d+)`)

// syntaxError hides what the parser says beside the line: it quotes the file.
func syntaxError(err error) error {
	if m := line.FindString(err.Error()); m != "" {
		return fmt.Errorf("redissonyaml: Redisson's file is not YAML, near %s", m)
	}
	return errors.New("redissonyaml: Redisson's file is not YAML")
}

// A file is one that is being read.
type file struct {
	connect.Settings
	errs []error

	unset   marks
	section string // with a dot behind it
	key     *yaml.Node
	servers *yaml.Node // the key of the section with the servers

	tls         connect.TLS
	sslKey      *yaml.Node // one of the keys about TLS that were set
	newest      bool       // nothing older than TLS 1.3
	secure      bool
	seen        bool // an address
	timeoutKey  *yaml.Node
	dialKey     *yaml.Node
	credentials credentials
}

// marks are texts that nobody has written, for variables that are not set.
type marks struct {
	bare  string // stands before one that has no default
	empty string // stands for one that has an empty default
}

// credentials are those that were found in an address.
type credentials struct {
	user     string
	password connect.Secret
}

func (f *file) name() string {
	if !keyName.MatchString(f.key.Value) {
		return f.section + "..." // may be a piece of a value
	}
	return f.section + f.key.Value
}

var keyName = regexp.MustCompile(`^[A-Za-z]{1,50}$`)

// warn and fail are about the key that is being read. What is true of several
// addresses they say once.
func (f *file) warn(format string, args ...any) { f.say(connect.Important, format, args...) }

func (f *file) say(severity connect.Severity, format string, args ...any) {
	w := connect.Warning{Severity: severity, Line: f.key.Line, Key: f.name(), Text: fmt.Sprintf(format, args...)}
	if n := len(f.Warnings); n == 0 || f.Warnings[n-1] != w {
		f.Warnings = append(f.Warnings, w)
	}
}

func (f *file) fail(format string, args ...any) {
	err := fmt.Errorf("redissonyaml: line %d: %s: %s", f.key.Line, f.name(), fmt.Sprintf(format, args...))
	if n := len(f.errs); n == 0 || f.errs[n-1].Error() != err.Error() {
		f.errs = append(f.errs, err)
	}
}

// read reads the whole file. What stands at the top overrules what stands in the
// section of the servers, where Redisson had it before.
func (f *file) read(top *yaml.Node) {
	var sections []*yaml.Node
	rest := *top
	rest.Content = nil
	for i := 0; i+1 < len(top.Content); i += 2 {
		key, value := top.Content[i], top.Content[i+1]
		if _, ok := serverKeys[key.Value]; ok && !null(value) {
			sections = append(sections, key, value)
			continue
		}
		rest.Content = append(rest.Content, key, value)
	}
	switch {
	case len(sections) == 0:
		f.errs = append(f.errs, errors.New("redissonyaml: Redisson's file names no servers: it has no singleServerConfig, "+
			"masterSlaveServersConfig, sentinelServersConfig or clusterServersConfig"))
		f.keys(&rest, rootKeys)
		return
	case len(sections) > 2:
		f.key = sections[2]
		f.fail("there is one section of servers already")
		return
	}
	f.servers = sections[0]
	f.key, f.section = f.servers, ""
	mode := serverKeys[f.servers.Value]
	if mode.refused != "" {
		f.fail("%s", mode.refused)
		return
	}
	f.Mode = mode.mode
	if sections[1].Kind != yaml.MappingNode {
		f.fail("is not a list of keys and values")
		return
	}
	f.section = f.servers.Value + "."
	f.keys(sections[1], mode.keys, sharedKeys)
	f.section = ""
	f.keys(&rest, rootKeys)
	f.finish()
}

func null(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// keys reads the keys of a section, which are in one of the tables.
func (f *file) keys(section *yaml.Node, tables ...map[string]option) {
	met := map[string]bool{}
	for i := 0; i+1 < len(section.Content); i += 2 {
		var value *yaml.Node
		f.key, value = section.Content[i], section.Content[i+1]
		name := f.key.Value
		if met[name] || f.key.Kind != yaml.ScalarNode || name == "<<" {
			f.fail("is given twice, or is no name of a key")
			continue
		}
		met[name] = true
		if value.Kind == yaml.AliasNode {
			value = value.Alias
		}
		if null(value) {
			continue // as if it were not there
		}
		var o option
		known := false
		for _, table := range tables {
			if found, ok := table[name]; ok {
				o, known = found, true
			}
		}
		switch {
		case !known:
			f.warn("has no effect: the key is unknown here; it is misspelt, or of another version of Redisson")
		case o.refused != "":
			if o.harmless == "" || !f.isDefault(value, o.harmless) {
				f.fail("%s", o.refused)
			}
		case o.ignored != "":
			f.say(connect.Harmless, "has no effect: %s", o.ignored)
		default:
			f.variables(value)
			o.set(f, value)
		}
	}
}

// isDefault reports whether the value is an object of Redisson's own class that
// changes nothing.
func (f *file) isDefault(v *yaml.Node, class string) bool {
	tag := strings.Trim(v.Tag, "!<>")
	if v.Kind == yaml.MappingNode && len(v.Content) == 2 && v.Content[0].Value == "class" {
		tag = v.Content[1].Value
	} else if len(v.Content) > 0 {
		return false
	}
	return strings.HasPrefix(tag, "org.redisson.") && strings.HasSuffix(tag, "."+class)
}

// variables warns of variables that nobody has set, and takes their marks away.
// One with an empty default is empty, which Redisson, that knows no such default,
// would take for a text, and for a password.
func (f *file) variables(v *yaml.Node) {
	unmarked := strings.NewReplacer(f.unset.bare, "", f.unset.empty, "")
	bare, empty := false, false
	for _, n := range append([]*yaml.Node{v}, v.Content...) {
		bare = bare || strings.Contains(n.Value, f.unset.bare)
		empty = empty || strings.Contains(n.Value, f.unset.empty)
		n.Value = unmarked.Replace(n.Value)
	}
	if bare {
		f.warn("has a variable that is not set and has no default; it stands as it is")
	}
	if empty {
		f.warn("has a variable that is not set and has an empty default: it is empty; Redisson takes ${NAME:-} as it is")
	}
}

// The readers of values. They say what is wrong, and not with which value: it
// may be a secret that has slipped into the wrong place.

func (f *file) text(v *yaml.Node) string {
	switch {
	case v.Kind != yaml.ScalarNode:
		f.fail("is not a text")
	case strings.HasPrefix(v.Value, "{aes}"):
		f.fail("is encrypted, which only Redisson PRO can read; put a variable there: ${NAME}")
	default:
		return v.Value
	}
	return ""
}

func (f *file) list(v *yaml.Node) []string {
	if v.Kind != yaml.SequenceNode || len(v.Content) == 0 {
		f.fail("is not a list, or is empty")
		return nil
	}
	var all []string
	for _, n := range v.Content {
		all = append(all, f.text(n))
	}
	return all
}

// number reads a whole number, and returns -1 for anything else.
func (f *file) number(v *yaml.Node, least, most int64) int64 {
	n, err := strconv.ParseInt(strings.ReplaceAll(v.Value, "_", ""), 10, 64) // as YAML 1.1 has it
	if v.Kind != yaml.ScalarNode || err != nil || n < least || n > most {
		f.fail("is not a whole number between %d and %d", least, most)
		return -1
	}
	return n
}

const year = 365 * 24 * 60 * 60 * 1000

func (f *file) milliseconds(v *yaml.Node, least int64) time.Duration {
	return time.Duration(max(f.number(v, least, 10*year), 0)) * time.Millisecond
}

// oneOf reads one of a few words, and returns which, or -1.
func (f *file) oneOf(v *yaml.Node, words ...string) int {
	i := slices.IndexFunc(words, func(w string) bool { return strings.EqualFold(v.Value, w) })
	if v.Kind != yaml.ScalarNode || i < 0 {
		f.fail("is none of %s", strings.Join(words, ", "))
	}
	return i
}

// boolean reads one, as YAML 1.1 has them, which Redisson reads.
func (f *file) boolean(v *yaml.Node) bool {
	return f.oneOf(v, "true", "false", "yes", "no", "on", "off")%2 == 0
}

// address reads the address of a server or a sentinel.
func (f *file) address(text string) {
	s, err := connect.Parse(text)
	port, more := shape(text)
	socket := len(s.Addresses) == 1 && strings.HasPrefix(s.Addresses[0], "/")
	switch {
	case err != nil:
		f.fail("%s", strings.TrimPrefix(err.Error(), "connect: "))
		return
	case s.Mode != connect.Single:
		f.fail("is the address of one server, and has no + in its scheme and no list")
		return
	case !port && !socket:
		f.fail("has no port, which Redisson insists on")
		return
	case f.seen && f.secure != (s.TLS != nil):
		f.fail("has addresses with TLS and such without")
		return
	case f.Mode != connect.Single && socket:
		f.fail("is a Unix socket, behind which there is one server only")
		return
	}
	if more && !socket {
		f.warn("what stands behind the port has no effect, as in Redisson; write the database as: database")
	}
	if _, rest, _ := strings.Cut(text, "://"); strings.Contains(rest[:strings.LastIndexByte(rest, '@')+1], "+") {
		f.warn("has a + before the host, which is itself here and a space in newer versions of Redisson; write it as %%2B, a space as %%20, or write: password")
	}
	found := credentials{s.User, s.Password}
	if f.seen && f.credentials != found {
		f.fail("has addresses with different users or passwords")
		return
	}
	f.seen, f.secure, f.credentials = true, s.TLS != nil, found
	f.Addresses = append(f.Addresses, s.Addresses...)
}

// shape says of an address that connect.Parse has read whether it has a port, and
// whether there is more behind it.
func shape(text string) (port, more bool) {
	_, rest, _ := strings.Cut(text, "://")
	rest = rest[strings.LastIndexByte(rest, '@')+1:]
	host := rest[:min(strings.IndexAny(rest+"/", "/?"), len(rest))]
	path, query, _ := strings.Cut(rest[len(host):], "?")
	return strings.LastIndexByte(host, ':') > strings.LastIndexByte(host, ']') && !strings.HasSuffix(host, ":"), strings.Trim(path, "/") != "" || query != ""
}

// finish puts together what several keys say.
func (f *file) finish() {
	f.key = f.servers
	if len(f.Addresses) == 0 && len(f.errs) == 0 {
		f.fail("has no address")
	}
	if f.Mode == connect.Sentinel && f.MasterName == "" {
		f.fail("has no masterName")
	}
	if f.servers.Value == "masterSlaveServersConfig" && f.Config.Acks == redlatch.AckAuto {
		f.Config.Acks = redlatch.AckAny // a driver for the master alone does not know of the others
	}
	f.mergeCredentials()
	f.Config.Redisson.Codec = cmp.Or(f.Config.Redisson.Codec, defaultCodec)

	if f.secure {
		if f.newest {
			f.tls.MinVersion = tls.VersionTLS13
		}
		if f.tls.Verify == connect.VerifyNone && f.tls.Truststore != "" {
			f.tls.Verify = connect.VerifyCA // Redisson does, too
		}
		f.TLS = &f.tls
	} else if f.sslKey != nil && f.seen {
		f.key = f.sslKey
		f.warn("has no effect, as other keys about SSL: the addresses are not of rediss:// or valkeys://")
	}

	watchdog := cmp.Or(f.Config.WatchdogTimeout, 30*time.Second)
	if f.Timeout > watchdog/3 {
		f.Timeout = watchdog / 3
		f.key, f.section = f.timeoutKey, f.servers.Value+"."
		f.warn("is lowered to %v, a third of lockWatchdogTimeout: a dead connection must be noticed before a lock is lost", f.Timeout)
	}
	if most := cmp.Or(f.Timeout, min(connect.DefaultTimeout, watchdog/3)); f.DialTimeout > most {
		f.DialTimeout = most
		f.key, f.section = f.dialKey, f.servers.Value+"."
		f.warn("is lowered to %v: here timeout (3000 by default) bounds a request with the connecting before it", f.DialTimeout)
	}
}

// mergeCredentials gives what stood in the addresses to whom it is for. It goes
// before what stands elsewhere, as in Redisson.
func (f *file) mergeCredentials() {
	user, password := &f.User, &f.Password
	if f.Mode == connect.Sentinel {
		user, password = &f.SentinelUser, &f.SentinelPassword
	}
	*user, *password = cmp.Or(f.credentials.user, *user), cmp.Or(f.credentials.password, *password)
	if f.Mode == connect.Sentinel && f.Password != "" && f.SentinelPassword == "" {
		f.warn("has no sentinelPassword, so sentinels get none; Redisson offers them the servers' password if they ask for one")
	}
}
