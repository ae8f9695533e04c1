package script

import (
	"crypto/sha1"
	"encoding/hex"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"
)

func TestHeader(t *testing.T) {
	for _, c := range []struct {
		name, source string
		want         Header
	}{
		{
			"all parts",
			"-- Takes a lock.\n-- KEYS lock channel\n-- ARGV lease_ms owner\n-- returns 1\nreturn 1\n",
			Header{"Takes a lock.", []string{"lock", "channel"}, []string{"lease_ms", "owner"}, false, nil, "1"},
		},
		{
			"several lines of words",
			"-- Takes a lock,\n-- or does not.\n-- KEYS lock\n-- returns 1 if so,\n-- 0 if not\nreturn 1",
			Header{"Takes a lock, or does not.", []string{"lock"}, nil, false, nil, "1 if so, 0 if not"},
		},
		{
			"remarks",
			"-- Reads.\n-- KEYS lock...\n-- ARGV owner lease_ms ... (a pair for each key)\n-- returns 1\n",
			Header{"Reads.", []string{"lock..."}, []string{"owner", "lease_ms", "..."}, false, nil, "1"},
		},
		{
			"keys that it may want",
			"-- Reads.\n-- KEYS lock proof...\n-- wants proof (of an owner)\n-- returns 1\nreturn 1",
			Header{"Reads.", []string{"lock", "proof..."}, nil, false, []string{"proof"}, "1"},
		},
		{
			"to be acknowledged", "-- Takes.\n-- KEYS lock\n-- acked\n-- returns 1\nreturn 1\n",
			Header{"Takes.", []string{"lock"}, nil, true, nil, "1"},
		},
		{"a remark only", "-- Reads.\n-- ARGV (none)\n-- returns 1\n", Header{"Reads.", nil, []string{}, false, nil, "1"}},
		{"spaces and CRLF", "--  Reads. \r\n--KEYS  a  b \r\n--  returns 1\r\nreturn 1\r\n", Header{"Reads.", []string{"a", "b"}, nil, false, nil, "1"}},
		{
			"it ends with the first line of code",
			"-- Reads.\n-- returns 1\nlocal x = 1\n-- KEYS not_a_declaration\n",
			Header{"Reads.", nil, nil, false, nil, "1"},
		},
	} {
		s, err := New(c.name, c.source)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := s.Header(); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %#v, want %#v", c.name, got, c.want)
		}
	}
}

func TestHeaderIsRequired(t *testing.T) {
	for name, source := range map[string]string{
		"empty":       "",
		"no header":   "return 1\n",
		"after code":  "return 1\n-- Reads.\n-- returns 1\n",
		"no purpose":  "-- KEYS lock\n-- returns 1\n",
		"no returns":  "-- Reads.\n-- KEYS lock\n",
		"empty lines": "\n-- Reads.\n-- returns 1\n",
	} {
		_, err := New("lock.take", source)
		if err == nil {
			t.Errorf("%s: accepted", name)
		} else if !strings.Contains(err.Error(), "lock.take") {
			t.Errorf("%s: the error does not name the script: %v", name, err)
		}
	}
}

func TestLoad(t *testing.T) {
	const source = "-- Reads.\n-- returns 1\nreturn 1\n"
	files := fstest.MapFS{"a.read.lua": {Data: []byte(source)}, "a.bad.lua": {Data: []byte("return 1")}}
	s := Load(files, "a.read")
	sum := sha1.Sum([]byte(source))
	if s.Name() != "a.read" || s.Source() != source || s.SHA() != hex.EncodeToString(sum[:]) {
		t.Errorf("got %q, %q, %s", s.Name(), s.Source(), s.SHA())
	}
	for _, name := range []string{"a.missing", "a.bad"} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("Load(%s) did not panic", name)
				}
			}()
			Load(files, name)
		}()
	}
}
