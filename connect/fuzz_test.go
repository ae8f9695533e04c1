package connect

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/redis/rueidis"

	"github.com/redlatch/redlatch"
)

// Whatever Parse accepts, it says the same of when it is asked again, when it is shown, and when somebody else reads it.
func FuzzParse(f *testing.F) {
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text)
		if again, err2 := Parse(text); !reflect.DeepEqual(again, s) || fmt.Sprint(err2) != fmt.Sprint(err) {
			t.Fatalf("%q is %v, %v, and then %v, %v", text, s, err, again, err2)
		}
		if err != nil {
			checkError(t, err)
			if !reflect.DeepEqual(s, Settings{}) || Redact(text) != "(unreadable URL)" {
				t.Fatalf("%q: %v, and %v", text, err, s)
			}
			return
		}
		checkShown(t, s)
		if theirs, err := rueidis.ParseURL(text); err == nil && s.Mode == Single {
			compareWithRueidis(t, text, s, theirs)
		}
		if s.TLS != nil {
			s.TLS.CAFile, s.TLS.CertFile, s.TLS.KeyFile = "", "", "" // there are no such files
		}
		if p, err := s.Plan(); err != nil || len(p.Addresses) == 0 {
			t.Fatalf("%q: no options: %v", text, err)
		}
	})
}

// checkError wants an error that fits on a few lines of a log, whatever was wrong.
func checkError(t *testing.T, err error) {
	t.Helper()
	text := err.Error()
	if !strings.HasPrefix(text, "connect: ") || len(text) > 400 || strings.ContainsFunc(text, unicode.IsControl) {
		t.Fatalf("the error is %q", text)
	}
}

// checkShown wants that what is shown is a URL that means the same, less what is not shown, and that it can be printed.
func checkShown(t *testing.T, s Settings) {
	t.Helper()
	shown := s.String()
	if strings.ContainsFunc(shown, func(r rune) bool { return !strconv.IsPrint(r) }) {
		t.Fatalf("it is shown as %q", shown)
	}
	again, err := Parse(shown)
	if err != nil || again.String() != shown {
		t.Fatalf("it is shown as %q, which is %v, %v", shown, again, err)
	}
	want := Settings{Mode: s.Mode, Addresses: s.Addresses, MasterName: s.MasterName, Database: s.Database}
	if s.User != "" || s.Password != "" {
		want.Password = stars
	}
	if s.TLS != nil {
		want.TLS = &TLS{}
	}
	if !reflect.DeepEqual(again, want) {
		t.Fatalf("it is shown as %q, which is\n%#v, want\n%#v", shown, again, want)
	}
}

// compareWithRueidis compares what both read in their own ways from a URL of one server.
func compareWithRueidis(t *testing.T, text string, s Settings, theirs rueidis.ClientOption) {
	t.Helper()
	user, password := theirs.Username, theirs.Password
	if password == "" && s.User == "" {
		user, password = "", user // a user alone is a password here
	}
	if strings.Contains(text, "password=") {
		user, password = s.User, string(s.Password) // a key that rueidis does not know
	}
	if user != s.User || password != string(s.Password) || theirs.SelectDB != s.Database || theirs.ClientName != s.ClientName ||
		(theirs.TLSConfig == nil) != (s.TLS == nil) || theirs.AlwaysRESP2 != s.RESP2 {
		t.Errorf("%q is %#v, and to rueidis %#v", text, s, theirs)
	}
	// It looks for ports in another way where there is none, and trims the paths of sockets.
	if p, err := parse(text); err == nil && p.hasPort && !p.socket && !slices.Equal(theirs.InitAddress, s.Addresses) {
		t.Errorf("%q is at %q, and to rueidis at %q", text, s.Addresses, theirs.InitAddress)
	}
}

// spelled is a password with a digit in any two of its characters, so that no piece of it is a word of an error.
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

// Wherever in a URL a password stands, and whatever its owner forgot to encode in it, no error has a piece of it.
func FuzzParseShowsNoPassword(f *testing.F) {
	f.Fuzz(func(t *testing.T, before, unencoded, after string, at uint8) {
		cut := int(at) % len(spelled)
		text := before + spelled[:cut] + unencoded + spelled[cut:] + after
		s, err := Parse(text)
		if err != nil && shows(err.Error()) {
			t.Errorf("%q: %v", text, err)
		}
		if shows(fmt.Sprint(s, Redact(text))) && !shows(fmt.Sprint(s.Addresses, s.MasterName)) {
			t.Errorf("%q is shown as %v", text, s)
		}
	})
}

// Whatever stands in Redisson's file, what is said about it shows no secret, and what is read from it can be opened, and
// written down again.
func FuzzParseRedisson(f *testing.F) {
	lookup := func(name string) (string, bool) { return spelled, name != "A" }
	f.Fuzz(func(t *testing.T, text string) {
		s, warnings, err := ParseRedisson([]byte(text), lookup)
		s2, warnings2, err2 := ParseRedisson([]byte(text), lookup)
		if !reflect.DeepEqual(s, s2) || !slices.Equal(warnings, warnings2) || fmt.Sprint(err) != fmt.Sprint(err2) {
			t.Fatalf("%q is %v %v %v, and then %v %v %v", text, s, warnings, err, s2, warnings2, err2)
		}
		checkWarnings(t, text, warnings)
		if said := fmt.Sprint(s, err, warnings); shows(said) && !shows(text) && !shows(fmt.Sprint(s.Addresses, s.MasterName)) {
			t.Fatalf("%q: %s", text, said)
		}
		if err != nil {
			if !reflect.DeepEqual(s, Settings{}) {
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
		if _, err := s.Plan(); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		// A file has whole milliseconds; a third of some is none.
		s.Timeout, s.DialTimeout = s.Timeout.Truncate(time.Millisecond), s.DialTimeout.Truncate(time.Millisecond)
		written := asRedissons(t, s)
		again, _, err := ParseRedisson([]byte(written), nil)
		if strings.Contains(written, "${") || strings.Contains(written, "{aes}") || !utf8.ValidString(fmt.Sprintf("%q", []string{s.User, string(s.Password)})) {
			return // an address can have what would mean something else elsewhere in a file
		}
		if err != nil || !reflect.DeepEqual(again, s) {
			t.Fatalf("%q is\n%#v\nand again from %s\n%#v, %v", text, s, written, again, err)
		}
	})
}

// checkWarnings wants that each is said once, about a line, and fits into a log.
func checkWarnings(t *testing.T, text string, warnings []Warning) {
	t.Helper()
	said := map[Warning]bool{}
	for _, w := range warnings {
		if said[w] && !strings.HasSuffix(w.Key, "...") || w.Line < 1 || len(w.String()) > 400 || strings.ContainsFunc(w.String(), unicode.IsControl) {
			t.Fatalf("%q: the warning %q", text, w)
		}
		said[w] = true
	}
}

// asRedissons writes settings as a file of Redisson's, in JSON, which is YAML.
func asRedissons(t *testing.T, s Settings) string {
	t.Helper()
	servers := map[string]any{"database": s.Database, "clientName": s.ClientName}
	top := map[string]any{"username": s.User, "password": string(s.Password), "checkLockSyncedSlaves": s.Config.Acks != redlatch.AcksOff}
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
		urls = append(urls, Settings{Addresses: []string{address}, TLS: s.TLS}.String())
	}
	section := "singleServerConfig"
	switch s.Mode {
	case Single:
		if s.Config.Acks == redlatch.AcksAny {
			section = "masterSlaveServersConfig"
			servers["masterAddress"] = urls[0]
		} else {
			servers["address"] = urls[0]
		}
	case Sentinel:
		section = "sentinelServersConfig"
		servers["sentinelAddresses"], servers["masterName"] = urls, s.MasterName
		servers["sentinelUsername"], servers["sentinelPassword"] = s.SentinelUser, string(s.SentinelPassword)
	case Cluster:
		section = "clusterServersConfig"
		servers["nodeAddresses"] = urls
		servers["shardedSubscriptionMode"] = map[redlatch.PubSub]string{redlatch.PubSubAuto: "AUTO", redlatch.PubSubSharded: "ON", redlatch.PubSubClassic: "OFF"}[s.Config.PubSub]
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
