package connect

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	for _, tc := range []struct {
		url   string
		want  Settings
		shown string
	}{
		{"redis://h", Settings{}, "redis://h:6379"},
		{"valkey://h:7000/", Settings{Addresses: []string{"h:7000"}}, "redis://h:7000"},
		{"redis://", Settings{Addresses: []string{"localhost:6379"}}, "redis://localhost:6379"},
		{"redis:///3", Settings{Addresses: []string{"localhost:6379"}, Database: 3}, "redis://localhost:6379/3"},
		{"redis://h/15", Settings{Database: 15}, "redis://h:6379/15"},
		{"redis://h?db=4", Settings{Database: 4}, "redis://h:6379/4"},
		{"redis://h/4?db=4", Settings{Database: 4}, "redis://h:6379/4"},
		{"redis://h?protocol=2", Settings{RESP2: true}, "redis://h:6379"},
		{"redis://h?protocol=3&client_cache=0&max_retries=0", Settings{}, "redis://h:6379"},
		{"redis://secret@h", Settings{Password: "secret"}, "redis://***@h:6379"},
		{"redis://:secret@h", Settings{Password: "secret"}, "redis://***@h:6379"},
		{"redis://h?password=secret", Settings{Password: "secret"}, "redis://***@h:6379"},
		{"redis://ann@h?password=ann", Settings{Password: "ann"}, "redis://***@h:6379"},
		{"redis://ann:secret@h:1/2", Settings{Addresses: []string{"h:1"}, User: "ann", Password: "secret", Database: 2}, "redis://***@h:1/2"},
		{"redis://ann:@h", Settings{User: "ann"}, "redis://***@h:6379"},
		{"redis://:p%2F%3F%23%40%25@h", Settings{Password: "p/?#@%"}, "redis://***@h:6379"},
		{"redis://:p@ss@h", Settings{Password: "p@ss"}, "redis://***@h:6379"},
		{"redis://[::1]:7000", Settings{Addresses: []string{"[::1]:7000"}}, "redis://[::1]:7000"},
		{"redis://[fe80::1%25eth0]", Settings{Addresses: []string{"[fe80::1%eth0]:6379"}}, "redis://[fe80::1%25eth0]:6379"},
		{"redis://[fe80::1]", Settings{Addresses: []string{"[fe80::1]:6379"}}, "redis://[fe80::1]:6379"},
		{
			"redis://h?client_name=me&dial_timeout=500ms&read_timeout=2&write_timeout=1s",
			Settings{ClientName: "me", DialTimeout: 500 * time.Millisecond, Timeout: 2 * time.Second},
			"redis://h:6379",
		},

		{"rediss://h", Settings{TLS: &TLS{}}, "rediss://h:6379"},
		{"valkeys://h?skip_verify=true", Settings{TLS: &TLS{Verify: VerifyNone}}, "rediss://h:6379"},
		{"valkeys://h?skip_verify=false", Settings{TLS: &TLS{}}, "rediss://h:6379"},
		{
			"rediss://h?cacert=/ca&cert=c.pem&key=k.pem&sni=name&tls_min=1.3",
			Settings{TLS: &TLS{CAFile: "/ca", CertFile: "c.pem", KeyFile: "k.pem", ServerName: "name", MinVersion: tls.VersionTLS13}},
			"rediss://h:6379",
		},
		{"rediss://h?tls_min=1.2", Settings{TLS: &TLS{MinVersion: tls.VersionTLS12}}, "rediss://h:6379"},

		{"unix:///run/redis.sock", Settings{Addresses: []string{"/run/redis.sock"}}, "unix:///run/redis.sock"},
		{
			"unix://:secret@/run/a%40b.sock?db=2",
			Settings{Addresses: []string{"/run/a@b.sock"}, Password: "secret", Database: 2},
			"unix://***@/run/a%40b.sock?db=2",
		},
		{"unix:///run/a%3Fb%1b.sock", Settings{Addresses: []string{"/run/a?b\x1b.sock"}}, "unix:///run/a%3Fb%1B.sock"},
		{"redis+uds:///s", Settings{Addresses: []string{"/s"}}, "unix:///s"},
		{"valkey+uds:///s", Settings{Addresses: []string{"/s"}}, "unix:///s"},

		{
			"redis+sentinel://ann:secret@h1,h2:7,[::1]/mymaster/3?sentinel_username=bob&sentinel_password=other",
			Settings{
				Mode: Sentinel, Addresses: []string{"h1:26379", "h2:7", "[::1]:26379"}, MasterName: "mymaster", Database: 3,
				User: "ann", Password: "secret", SentinelUser: "bob", SentinelPassword: "other",
			},
			"redis+sentinel://***@h1:26379,h2:7,[::1]:26379/mymaster/3",
		},
		{"valkeys+sentinel://h1/m?addr=h2", Settings{Mode: Sentinel, Addresses: []string{"h1:26379", "h2:26379"}, MasterName: "m", TLS: &TLS{}}, "rediss+sentinel://h1:26379,h2:26379/m"},
		{"redis+sentinel://h/a%2Fb", Settings{Mode: Sentinel, Addresses: []string{"h:26379"}, MasterName: "a/b"}, "redis+sentinel://h:26379/a%2Fb"},
		{"redis+sentinel://h/a%40b", Settings{Mode: Sentinel, Addresses: []string{"h:26379"}, MasterName: "a@b"}, "redis+sentinel://h:26379/a%40b"},
		{"redis+sentinel://h?master_name=m", Settings{Mode: Sentinel, Addresses: []string{"h:26379"}, MasterName: "m"}, "redis+sentinel://h:26379/m"},
		{"redis+sentinel://h/m?master_set=m&db=1", Settings{Mode: Sentinel, Addresses: []string{"h:26379"}, MasterName: "m", Database: 1}, "redis+sentinel://h:26379/m/1"},
		{"redis://h1:5/2?master_name=m&addr=h2:6", Settings{Mode: Sentinel, Addresses: []string{"h1:5", "h2:6"}, MasterName: "m", Database: 2}, "redis+sentinel://h1:5,h2:6/m/2"},
		{"redis://h1:5?master_set=m", Settings{Mode: Sentinel, Addresses: []string{"h1:5"}, MasterName: "m"}, "redis+sentinel://h1:5/m"},

		{"redis+cluster://secret@h1,h2:7001", Settings{Mode: Cluster, Addresses: []string{"h1:6379", "h2:7001"}, Password: "secret"}, "redis+cluster://***@h1:6379,h2:7001"},
		{"redis+cluster://h1/1", Settings{Mode: Cluster, Addresses: []string{"h1:6379"}, Database: 1}, "redis+cluster://h1:6379/1"},
		{"rediss://h1:1?addr=h2:2&addr=h3", Settings{Mode: Cluster, Addresses: []string{"h1:1", "h2:2", "h3:6379"}, TLS: &TLS{}}, "rediss+cluster://h1:1,h2:2,h3:6379"},
	} {
		if tc.want.Addresses == nil {
			tc.want.Addresses = []string{"h:6379"}
		}
		got, err := Parse(tc.url)
		if err != nil {
			t.Errorf("%s: %v", tc.url, err)
			continue
		}
		if !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s:\n got %#v\nwant %#v", tc.url, got, tc.want)
		}
		if shown := Redact(tc.url); shown != tc.shown {
			t.Errorf("%s is shown as %s, want %s", tc.url, shown, tc.shown)
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
		{"rediss+uds:///s", "unknown scheme"},
		{"unix+uds:///s", "unknown scheme"},
		{"redis+://h", "unknown scheme"},
		{"redis+http://h", "unknown scheme"},
		{"redis://h1:1,h2:2", "several hosts"},
		{"redis://:secret@h1,h2/0", "several hosts"},
		{"redis+sentinel://h", "no master name"},
		{"redis+sentinel:///", "no master name"},
		{"redis+sentinel://h1,,h2/m", "empty host"},
		{"redis+sentinel://h/m/x", "database number"},
		{"redis+sentinel://h/m/1/2", "database number"},
		{"redis+sentinel://h/m/1?db=2", "differ"},
		{"redis+sentinel://h/m?master_name=n", "differ"},
		{"redis://h:1?master_name=m&master_set=n", "differ"},
		{"redis://h?master_name=m", "ports of sentinels"},
		{"redis://h:1?master_name=m&addr=h2", "ports of sentinels"},
		{"redis://h:1?master_name=", "master_name in the URL is empty"},
		{"redis+cluster://h?master_name=m", "no master name"},
		{"redis+cluster://h1,h2/m", "database number"},
		{"redis://h?addr=", "addr in the URL is empty"},
		{"redis://h?addr=h2:x", "cannot be read"},
		{"redis://h?addr=h2/3", "cannot be read"},
		{"redis://h?addr=h2:0", "port"},
		{"unix:///s?addr=h", "Unix socket"},
		{"unix:///s?master_name=m", "Unix socket"},
		{"redis://h?timeout=3s", `unknown key "timeout"`},
		{"redis://h?db=1&Protocol=2", `unknown key "Protocol"`},
		{"redis://h?password=correct&horse=battery", `unknown key "..."`},
		{"redis+sentinel://h/m?sentinel_password=correct&horse=battery", `unknown key "..."`},
		{"redis://:correct?horse", `unknown key "..."`},
		{"redis://h?" + strings.Repeat("x", 1000) + "=1", `unknown key "..."`},
		{"redis://h?db=1&db=2", "db in the URL is given twice"},
		{"redis://:a@h?password=b", "given twice"},
		{"redis://h?db=x", "db in the URL"},
		{"redis://h?db=-1", "db in the URL"},
		{"redis://h?protocol=4", "neither 2 nor 3"},
		{"redis://h?client_cache=1", "can only be 0"},
		{"redis://h?client_name=", "is empty"},
		{"redis://h?read_timeout=0", "positive time"},
		{"redis://h?dial_timeout=-1s", "positive time"},
		{"redis://h?write_timeout=soon", "positive time"},
		{"redis://h?skip_verify=true", "skip_verify is for TLS"},
		{"redis://h?cacert=x", "cacert is for TLS"},
		{"rediss://h?skip_verify=maybe", "neither true nor false"},
		{"rediss://h?tls_min=1.1", "neither 1.2 nor 1.3"},
		{"redis://h/one", "not end with a database number"},
		{"redis://h/1/", "not end with a database number"},
		{"redis://h/-1", "not end with a database number"},
		{"redis://h/1?db=2", "differ"},
		{"redis://h:0", "port"},
		{"redis://h:65536", "port"},
		{"redis://h:x", "cannot be read"},
		{"redis://::1", "cannot be read"},
		{"redis://h#1", "cannot be read"},
		{"redis://h?password=secret#", "cannot be read"},
		{"redis://h?addr=h1,h2", "cannot be read"},
		{"redis://]:1", "cannot be read"},
		{"redis://h?db=%zz", "cannot be read"},
		{"unix://run/redis.sock", "three slashes"},
		{"unix://", "three slashes"},
		{"redis://:se/cret@h", "'@' after the host"},
		{"redis://:1/cret@h", "'@' after the host"},
		{"redis://:1?cret@h", "'@' after the host"},
		{"redis://:1#cret@h", "'@' after the host"},
		{"redis+sentinel://:1/cret@h/m", "'@' after the host"},
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
		"redis://%s@h/0?db=1", "redis+sentinel://%s@h1,h2/m/x", "redis+cluster://%s@h1,h2", "redis://%s@h?addr=h2", "rediss://%s@h?tls_min=1", " redis://%s@h", "redis://%s@h:70000", "redis://%s@127.0.0.1:1",
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

// However settings are shown, the passwords in them are not.
func TestSettingsShowNoPassword(t *testing.T) {
	s, err := Parse("redis+sentinel://ann:hunter2@h/m?sentinel_password=hunter3")
	if err != nil {
		t.Fatal(err)
	}
	asJSON, err := json.Marshal([]any{s, s.Password})
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "settings", s, "pointer", &s, "password", s.Password)
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "password", s.Password)
	var mistaken []string
	for _, verb := range []string{"%d", "%t", "%+5d", "%#o"} {
		mistaken = append(mistaken, fmt.Sprintf(verb, s), fmt.Sprintf(verb, s.Password))
	}
	for _, shown := range append(mistaken,
		fmt.Sprint(s), fmt.Sprintf("%+v", s), fmt.Sprintf("%#v", s), fmt.Sprintf("%v", &s), fmt.Sprintf("%q", s.Password),
		fmt.Sprintf("%#v", s.Password), fmt.Sprintf("%x", s.Password), string(asJSON), log.String(),
	) {
		if strings.Contains(shown, "hunter") || strings.Contains(shown, fmt.Sprintf("%x", "hunter")) || !strings.Contains(shown, "*") && shown != "2a2a2a" {
			t.Errorf("shown as %s", shown)
		}
	}
}
