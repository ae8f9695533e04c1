package connect

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/redis/rueidis"

	"github.com/redlatch/redlatch/connect"
)

// portless finds a host without a port, after which rueidis looks for one in
// another way.
var portless = regexp.MustCompile(`://([^/?]*@)?([^:/?]*|\[[^\]]*\]):?([/?]|$)`)

// What both read from a URL of one server, each in its own way, is the same.
func FuzzRueidisReadsTheSame(f *testing.F) {
	f.Fuzz(func(t *testing.T, text string) {
		s, err := connect.Parse(text)
		if err != nil || s.Mode != connect.Single {
			return
		}
		theirs, err := rueidis.ParseURL(text)
		if err != nil {
			return
		}
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
		// It trims the paths of sockets.
		if socket := filepath.IsAbs(s.Addresses[0]); !socket && !portless.MatchString(text) && !slices.Equal(theirs.InitAddress, s.Addresses) {
			t.Errorf("%q is at %q, and to rueidis at %q", text, s.Addresses, theirs.InitAddress)
		}
	})
}
