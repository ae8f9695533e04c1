package redissonyaml

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/connect"
)

// Whatever stands in Redisson's file, what is said about it shows no secret, and
// what is read from it can be opened, and written down again.
func FuzzParse(f *testing.F) {
	lookup := func(name string) (string, bool) { return spelled, name != "A" }
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse([]byte(text), lookup)
		s2, err2 := Parse([]byte(text), lookup)
		if !reflect.DeepEqual(s, s2) || fmt.Sprint(err) != fmt.Sprint(err2) {
			t.Fatalf("%q is %v %v %v, and then %v %v %v", text, s, s.Warnings, err, s2, s2.Warnings, err2)
		}
		checkWarnings(t, text, s.Warnings)
		if said := fmt.Sprint(s, err, s.Warnings); shows(said) && !shows(text) && !shows(fmt.Sprint(s.Addresses, s.MasterName)) {
			t.Fatalf("%q: %s", text, said)
		}
		if err != nil {
			if !reflect.DeepEqual(s, connect.Settings{Warnings: s.Warnings}) {
				t.Fatalf("%q: %v, and %v", text, err, s)
			}
			for line := range strings.Lines(err.Error()) {
				checkError(t, errors.New(strings.TrimSuffix(line, "\n")))
			}
			return
		}
		if s.TLS != nil {
			s.TLS.Keystore, s.TLS.Truststore = "", "" // which Go cannot read
		}
		if _, err := s.Plan(redlatch.Config{}); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		// A file has whole milliseconds; a third of some is none.
		s.Timeout, s.DialTimeout = s.Timeout.Truncate(time.Millisecond), s.DialTimeout.Truncate(time.Millisecond)
		written := asRedissons(t, s)
		again, err := Parse([]byte(written), nil)
		s.Warnings, again.Warnings = nil, nil
		if strings.Contains(written, "${") || strings.Contains(written, "{aes}") || !utf8.ValidString(fmt.Sprintf("%q", []string{s.User, string(s.Password)})) {
			return // an address can have what would mean something else elsewhere in a file
		}
		if err != nil || !reflect.DeepEqual(again, s) {
			t.Fatalf("%q is\n%#v\nand again from %s\n%#v, %v", text, s, written, again, err)
		}
	})
}

// checkWarnings wants that each is said once, about a line, and fits into a log.
func checkWarnings(t *testing.T, text string, warnings []connect.Warning) {
	t.Helper()
	said := map[connect.Warning]bool{}
	for _, w := range warnings {
		if said[w] && !strings.HasSuffix(w.Key, "...") || w.Line < 1 || len(w.String()) > 400 || strings.ContainsFunc(w.String(), unicode.IsControl) {
			t.Fatalf("%q: the warning %q", text, w)
		}
		said[w] = true
	}
}

// asRedissons writes settings as a file of Redisson's, in JSON, which is YAML.
func asRedissons(t *testing.T, s connect.Settings) string {
	t.Helper()
	servers := map[string]any{"database": s.Database, "clientName": s.ClientName}
	top := map[string]any{"username": s.User, "password": string(s.Password), "checkLockSyncedSlaves": s.Config.Acks != redlatch.AckOff}
	set := func(m map[string]any, key string, d time.Duration) {
		if d != 0 {
			m[key] = d.Milliseconds()
		}
	}
	set(servers, "timeout", s.Timeout)
	set(servers, "connectTimeout", s.DialTimeout)
	set(servers, "scanInterval", s.Refresh)
	set(top, "lockWatchdogTimeout", s.Config.WatchdogTimeout)
	set(top, "slavesSyncTimeout", s.Config.AckTimeout)
	switch class, settings := strings.CutSuffix(s.Config.Redisson.Codec, " with settings"); {
	case class == "unknown":
		top["codec"] = 1
	case settings:
		top["codec"] = map[string]any{"class": class, "more": 1}
	default:
		top["codec"] = map[string]any{"class": class}
	}
	if s.RESP2 {
		top["protocol"] = "RESP2"
	}
	if s.TLS != nil {
		top["sslVerificationMode"] = []string{"STRICT", "CA_ONLY", "NONE"}[s.TLS.Verify]
		if s.TLS.MinVersion == tls.VersionTLS13 {
			top["sslProtocols"] = []string{"TLSv1.3"}
		} else if s.TLS.MinVersion != 0 {
			top["sslProtocols"] = []string{"TLSv1.2"}
		}
		if s.TLS.CipherSuites != nil {
			var names []string
			for _, id := range s.TLS.CipherSuites {
				names = append(names, tls.CipherSuiteName(id))
			}
			top["sslCiphers"] = names
		}
	}
	var urls []string
	for _, address := range s.Addresses {
		urls = append(urls, connect.Settings{Addresses: []string{address}, TLS: s.TLS}.String())
	}
	section := "singleServerConfig"
	switch s.Mode {
	case connect.Single:
		if s.Config.Acks == redlatch.AckAny {
			section = "masterSlaveServersConfig"
			servers["masterAddress"] = urls[0]
		} else {
			servers["address"] = urls[0]
		}
	case connect.Sentinel:
		section = "sentinelServersConfig"
		servers["sentinelAddresses"], servers["masterName"] = urls, s.MasterName
		servers["sentinelUsername"], servers["sentinelPassword"] = s.SentinelUser, string(s.SentinelPassword)
	case connect.Cluster:
		section = "clusterServersConfig"
		servers["nodeAddresses"] = urls
		servers["shardedSubscriptionMode"] = map[redlatch.PubSub]string{redlatch.PubSubAuto: "AUTO", redlatch.PubSubSharded: "ON", redlatch.PubSubClassic: "OFF"}[s.Config.Redisson.PubSub]
	}
	top[section] = servers
	text, err := json.Marshal(top)
	if err != nil {
		t.Fatal(err)
	}
	var ascii strings.Builder // YAML has no control characters, even where JSON has them
	for _, r := range string(text) {
		if r < 0x7f {
			ascii.WriteRune(r)
		} else {
			fmt.Fprintf(&ascii, `\U%08x`, r)
		}
	}
	return ascii.String()
}

// checkError wants an error that fits on a few lines of a log, whatever was wrong.
func checkError(t *testing.T, err error) {
	t.Helper()
	text := err.Error()
	if !strings.HasPrefix(text, "redissonyaml: ") || len(text) > 400 || strings.ContainsFunc(text, unicode.IsControl) {
		t.Fatalf("the error is %q", text)
	}
}

// spelled is a password with a digit in any two of its characters, so that no
// piece of it is a word of an error.
const spelled = "h1u2n3t4e5r6t7w8o9"

// shows says whether a text has a piece of spelled.
func shows(text string) bool {
	for i := range len(spelled) - 2 {
		if strings.Contains(text, spelled[i:i+3]) {
			return true
		}
	}
	return false
}
