package connect

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	type want struct {
		address, user, password string
		db                      int
		tls, resp2, skip        bool
		shown                   string
	}
	for _, tc := range []struct {
		url  string
		want want
	}{
		{"redis://h", want{address: "h:6379", shown: "redis://h:6379"}},
		{"valkey://h:7000/", want{address: "h:7000", shown: "valkey://h:7000"}},
		{"redis://", want{address: "localhost:6379", shown: "redis://localhost:6379"}},
		{"redis:///3", want{address: "localhost:6379", db: 3, shown: "redis://localhost:6379/3"}},
		{"redis://h/15", want{address: "h:6379", db: 15, shown: "redis://h:6379/15"}},
		{"redis://h?db=4", want{address: "h:6379", db: 4, shown: "redis://h:6379/4"}},
		{"redis://h/4?db=4", want{address: "h:6379", db: 4, shown: "redis://h:6379/4"}},
		{"redis://h?protocol=2", want{address: "h:6379", resp2: true, shown: "redis://h:6379"}},
		{"redis://h?protocol=3", want{address: "h:6379", shown: "redis://h:6379"}},
		{"redis://secret@h", want{address: "h:6379", password: "secret", shown: "redis://***@h:6379"}},
		{"redis://:secret@h", want{address: "h:6379", password: "secret", shown: "redis://***@h:6379"}},
		{"redis://ann:secret@h:1/2", want{address: "h:1", user: "ann", password: "secret", db: 2, shown: "redis://***@h:1/2"}},
		{"redis://ann:@h", want{address: "h:6379", user: "ann", shown: "redis://***@h:6379"}},
		{"redis://:p%2F%3F%23%40%25@h", want{address: "h:6379", password: "p/?#@%", shown: "redis://***@h:6379"}},
		{"redis://:p@ss@h", want{address: "h:6379", password: "p@ss", shown: "redis://***@h:6379"}},
		{"redis://[::1]:7000", want{address: "[::1]:7000", shown: "redis://[::1]:7000"}},
		{"redis://[fe80::1]", want{address: "[fe80::1]:6379", shown: "redis://[fe80::1]:6379"}},
		{"rediss://h", want{address: "h:6379", tls: true, shown: "rediss://h:6379"}},
		{"valkeys://h?skip_verify=true", want{address: "h:6379", tls: true, skip: true, shown: "valkeys://h:6379"}},
		{"unix:///run/redis.sock", want{address: "/run/redis.sock", shown: "unix:///run/redis.sock"}},
		{"unix://:secret@/run/a%40b.sock?db=2", want{address: "/run/a@b.sock", password: "secret", db: 2, shown: "unix://***@/run/a@b.sock?db=2"}},
	} {
		opt, err := Parse(tc.url)
		if err != nil {
			t.Errorf("%s: %v", tc.url, err)
			continue
		}
		got := want{
			address: strings.Join(opt.InitAddress, ","), user: opt.Username, password: opt.Password, db: opt.SelectDB,
			tls: opt.TLSConfig != nil, resp2: opt.AlwaysRESP2, shown: Redact(tc.url),
		}
		if opt.TLSConfig != nil {
			got.skip = opt.TLSConfig.InsecureSkipVerify
			if opt.TLSConfig.ServerName != "h" {
				t.Errorf("%s: ServerName %q", tc.url, opt.TLSConfig.ServerName)
			}
		}
		if got != tc.want {
			t.Errorf("%s:\n got %+v\nwant %+v", tc.url, got, tc.want)
		}
		if !opt.ForceSingleClient || !opt.DisableCache || opt.ConnWriteTimeout != timeout {
			t.Errorf("%s: not the options of one server without cache: %+v", tc.url, opt)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, tc := range []struct{ url, want string }{
		{"", "no scheme"},
		{"h:6379", "no scheme"},
		{"user:secret@h", "no scheme"},
		{"redis:h", "no scheme"},
		{"http://h", "unknown scheme"},
		{"redis+uds:///s", "unknown scheme"},
		{"redis+sentinel://h/mymaster", "not supported yet"},
		{"redis+cluster://h", "not supported yet"},
		{"redis://h1:1,h2:2", "not supported yet"},
		{"redis://:secret@h1,h2/0", "not supported yet"},
		{"redis://h?addr=h2:1", "not supported yet"},
		{"redis://h?master_name=m", "not supported yet"},
		{"redis://h?master_set=m", "not supported yet"},
		{"redis://h?timeout=3s", `unknown key "timeout"`},
		{"redis://h?db=1&Protocol=2", `unknown key "Protocol"`},
		{"redis://h?db=1&db=2", "db is given twice"},
		{"redis://h?db=x", "db in the URL"},
		{"redis://h?db=-1", "db in the URL"},
		{"redis://h?protocol=4", "neither 2 nor 3"},
		{"redis://h?skip_verify=true", "no certificate"},
		{"rediss://h?skip_verify=maybe", "neither true nor false"},
		{"redis://h/one", "not a database number"},
		{"redis://h/1/", "not a database number"},
		{"redis://h/-1", "not a database number"},
		{"redis://h/1?db=2", "differ"},
		{"redis://h:0", "port"},
		{"redis://h:65536", "port"},
		{"redis://h:x", "cannot be read"},
		{"redis://h#1", "cannot be read"},
		{"redis://h?db=%zz", "cannot be read"},
		{"unix://run/redis.sock", "three slashes"},
		{"unix://", "three slashes"},
		{"redis://:se/cret@h", "cannot be read"},
		{"redis://:1/cret@h", "'@' after the host"},
		{"redis://:1?cret@h", "'@' after the host"},
		{"redis://:1#cret@h", "'@' after the host"},
	} {
		_, err := Parse(tc.url)
		if err == nil {
			t.Errorf("%s: no error", tc.url)
			continue
		}
		if !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v; want %q", tc.url, err, tc.want)
		}
		if got := Redact(tc.url); got != "(unreadable URL)" {
			t.Errorf("Redact(%s) = %q", tc.url, got)
		}
	}
}

// No error and no shown address contains a credential or four characters of
// one, however wrong the URL is.
func TestNoErrorShowsCredentials(t *testing.T) {
	const user, password = "wilhelmina", "hunter2-Tr0ub4dor"
	var secrets []string
	for _, s := range []string{user, password} {
		for i := range len(s) - 3 {
			secrets = append(secrets, s[i:i+4])
		}
	}
	forms := []string{
		"redis://%s@h:6379/0", "rediss://%s@h:x/0", "redis://%s@h/nodb", "redis://%s@h?what=1", "redis://%s@h1,h2",
		"redis+sentinel://%s@h/m", "unix://%s@/run/redis.sock", "unix://%s@host/run/redis.sock", "%s@h:6379", "redis:%s@h",
		"redis//%s@h", "http://%s@h", "redis://h/%s", "redis://h:6379%s", "redis://%s@[::1", "redis://%s@h\x7f", "redis://%s@h#x",
		"redis://%s@h/0?db=1", " redis://%s@h", "redis://%s@h:70000", "redis://%s@127.0.0.1:1",
	}
	seen := 0
	for _, breaker := range []string{"", "/", "?", "#", "@", "%", "%zz", ":", "&x=", "\x00", " ", "=", "1/", "]", "["} {
		for _, form := range forms {
			for _, userinfo := range []string{
				password + breaker, breaker + password, user + ":" + password[:8] + breaker + password[8:],
				":" + breaker + password, ":1" + breaker + password, user + breaker + ":" + password,
			} {
				text := fmt.Sprintf(form, userinfo)
				_, err := Parse(text)
				shown := Redact(text)
				if err != nil {
					shown += " " + err.Error()
					seen++
				} else if strings.HasPrefix(form, "redis://h") {
					continue // without a userinfo part a "host" of that name is not a secret
				}
				for _, s := range secrets {
					if strings.Contains(shown, s) {
						t.Fatalf("%q is shown as %q", text, shown)
					}
				}
			}
		}
	}
	if seen < 500 {
		t.Errorf("only %d URLs were refused; the test tests little", seen)
	}
}

// What a server says is shown without what it was told.
func TestOpenErrorMasks(t *testing.T) {
	cause := errors.New("ERR unknown command `HELLO`, with args beginning with: `3` `AUTH` `ann` `hunter2`")
	err := error(&openError{address: "h:6379", secrets: []string{"hunter2", "ann", ""}, err: cause})
	for _, text := range []string{err.Error(), fmt.Sprint(err), fmt.Sprintf("%+v", err)} {
		if strings.Contains(text, "hunter2") || strings.Contains(text, "`ann`") || !strings.Contains(text, "h:6379") {
			t.Errorf("shown as %q", text)
		}
	}
	if !errors.Is(err, cause) {
		t.Error("the cause is lost")
	}
}

func TestUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	opt, err := Parse((&url.URL{Scheme: "unix", Path: path}).String())
	if err != nil {
		t.Fatal(err)
	}
	c, err := opt.DialCtxFn(t.Context(), opt.InitAddress[0], &opt.Dialer, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}

func FuzzParse(f *testing.F) {
	f.Add("redis://user:password@host:6379/0?protocol=2")
	f.Add("unix:///run/redis.sock?db=1")
	f.Fuzz(func(t *testing.T, text string) {
		opt, err := Parse(text)
		if (err == nil) == (len(opt.InitAddress) == 0) {
			t.Fatalf("%q: %v, %v", text, opt.InitAddress, err)
		}
	})
}
