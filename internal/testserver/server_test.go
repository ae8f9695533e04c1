package testserver_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/testserver"
)

// each runs f once with every kind of server, side by side.
func each(t *testing.T, f func(t *testing.T, k testserver.Kind)) {
	t.Helper()
	inTurn(t, func(t *testing.T, k testserver.Kind) {
		t.Parallel()
		f(t, k)
	})
}

// inTurn is each for what changes, or looks at, something that all tests share.
func inTurn(t *testing.T, f func(t *testing.T, k testserver.Kind)) {
	t.Helper()
	for _, k := range testserver.EveryKind() {
		t.Run(string(k), func(t *testing.T) { f(t, k) })
	}
}

func TestDo(t *testing.T) {
	each(t, func(t *testing.T, k testserver.Kind) {
		s := testserver.Start(t, k)
		for _, c := range []struct {
			args []string
			want any
		}{
			{[]string{"PING"}, "PONG"},
			{[]string{"SET", "s", "a\r\nb"}, "OK"},
			{[]string{"GET", "s"}, "a\r\nb"},
			{[]string{"GET", "none"}, nil},
			{[]string{"SET", "s", ""}, "OK"},
			{[]string{"GET", "s"}, ""},
			{[]string{"INCR", "n"}, int64(1)},
			{[]string{"HSET", "h", "f", "1", "g", "2"}, int64(2)},
			{[]string{"HGETALL", "h"}, []any{"f", "1", "g", "2"}},
			{[]string{"HGETALL", "none"}, []any{}},
			{[]string{"EVAL", "return {1,{'a',false},redis.status_reply('x')}", "0"}, []any{int64(1), []any{"a", nil}, "x"}},
		} {
			if got, err := s.Do(c.args...); err != nil || !reflect.DeepEqual(got, c.want) {
				t.Errorf("%q = %#v, %v; want %#v", c.args, got, err, c.want)
			}
		}
		var e testserver.ReplyError
		if _, err := s.Do("INCR", "h"); !errors.As(err, &e) || !strings.HasPrefix(string(e), "WRONGTYPE ") {
			t.Errorf("INCR of a hash: %v", err)
		}
		if v := s.Version(); len(strings.Split(v, ".")) != 3 {
			t.Errorf("version %q", v)
		}
		if s.Kind() != k {
			t.Errorf("kind %q", s.Kind())
		}
	})
}

func TestKillAndRestart(t *testing.T) {
	each(t, func(t *testing.T, k testserver.Kind) {
		s := testserver.Start(t, k)
		addr := s.Addr()
		s.MustDo("SET", "x", "1")
		c, err := s.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		s.Kill()
		s.Kill()
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		var timeout net.Error
		if _, err := c.Read(make([]byte, 1)); err == nil || errors.As(err, &timeout) && timeout.Timeout() {
			t.Fatalf("a connection outlived the server: %v", err)
		}
		if v, err := s.Do("PING"); err == nil {
			t.Fatalf("a killed server says %v", v)
		}
		s.Restart()
		if s.Addr() != addr {
			t.Fatalf("address %s after the restart, %s before", s.Addr(), addr)
		}
		if v := s.MustDo("GET", "x"); v != nil {
			t.Fatalf("x = %v after a crash without persistence", v)
		}
		s.Restart() // of a running one
		s.MustDo("PING")
	})
}

func TestPersistence(t *testing.T) {
	each(t, func(t *testing.T, k testserver.Kind) {
		s := testserver.Start(t, k, "--appendonly", "yes", "--appendfsync", "always")
		s.MustDo("SET", "x", "1")
		s.Restart()
		if v := s.MustDo("GET", "x"); v != "1" {
			t.Fatalf("x = %v after a crash with appendfsync always", v)
		}
	})
}

func TestPassword(t *testing.T) {
	each(t, func(t *testing.T, k testserver.Kind) {
		s := testserver.Start(t, k, "--requirepass", "secret")
		if got := s.MustDo("PING"); got != "PONG" {
			t.Fatalf("PING: %v", got)
		}
		c, err := s.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprint(c, "PING\r\n")
		b := make([]byte, 7)
		if _, err := io.ReadFull(c, b); err != nil || string(b) != "-NOAUTH" {
			t.Fatalf("PING without the password: %q, %v", b, err)
		}
	})
}

func TestPauseAndResume(t *testing.T) {
	each(t, func(t *testing.T, k testserver.Kind) {
		s := testserver.Start(t, k)
		s.Pause()
		answer := make(chan error, 1)
		go func() {
			_, err := s.Do("PING")
			answer <- err
		}()
		select {
		case err := <-answer:
			t.Fatalf("a paused server answered (%v)", err)
		case <-time.After(200 * time.Millisecond): // proves presence of silence only as long as this
		}
		s.Resume()
		if err := <-answer; err != nil {
			t.Fatal(err)
		}
		s.Pause() // the cleanup must cope with a paused one
	})
}

func TestManyAtOnce(t *testing.T) {
	each(t, func(t *testing.T, k testserver.Kind) {
		var wg sync.WaitGroup
		var addrs sync.Map
		for range 6 {
			s := testserver.Start(t, k)
			if _, dup := addrs.LoadOrStore(s.Addr(), true); dup {
				t.Fatalf("two servers on %s", s.Addr())
			}
			wg.Go(func() {
				if _, err := s.Do("PING"); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	})
}

func TestStoppedWithTheTest(t *testing.T) {
	inTurn(t, func(t *testing.T, k testserver.Kind) {
		var s *testserver.Server
		t.Run("inner", func(t *testing.T) { s = testserver.Start(t, k) })
		if c, err := s.Dial(t.Context()); err == nil {
			c.Close()
			t.Fatal("the server outlived its test")
		}
		for _, dir := range []string{s.Dir(), filepath.Dir(s.Dir())} { // the latter is this process's, and no other server runs
			if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
				t.Fatalf("%s: %v", dir, err)
			}
		}
	})
}

// judge is a test that others are judged by: it records what would end it.
type judge struct {
	testing.TB
	said string
}

func (j *judge) Helper() {}

func (j *judge) Fatalf(format string, args ...any) {
	j.said = fmt.Sprintf(format, args...)
	panic(j)
}

// verdict returns what Start fails with.
func verdict(t *testing.T, k testserver.Kind, args ...string) string {
	t.Helper()
	j := &judge{TB: t}
	func() {
		defer func() {
			if r := recover(); r != nil && r != j {
				panic(r)
			}
		}()
		testserver.Start(j, k, args...)
	}()
	return j.said
}

func TestMissingServerSaysWhatToInstall(t *testing.T) {
	t.Setenv("REDLATCH_SERVERS", "")
	t.Setenv("PATH", "")
	t.Chdir(t.TempDir())
	for _, k := range testserver.EveryKind() {
		said := verdict(t, k)
		for _, want := range []string{strings.SplitN(string(k), "-", 2)[0] + "-server", "make servers", "package", "REDLATCH_SERVERS"} {
			if !strings.Contains(said, want) {
				t.Errorf("%s: %q does not mention %q", k, said, want)
			}
		}
	}
	t.Setenv("REDLATCH_SERVERS", "/nonexistent")
	if said := verdict(t, testserver.Redis); !strings.Contains(said, "/nonexistent") {
		t.Errorf("with a wrong REDLATCH_SERVERS: %q", said)
	}
}

func TestFailureShowsTheLog(t *testing.T) {
	each(t, func(t *testing.T, k testserver.Kind) {
		if said := verdict(t, k, "--no-such-option", "1"); !strings.Contains(said, "no-such-option") {
			t.Errorf("Start says %q", said)
		}
	})
}

func TestWrongProgram(t *testing.T) {
	inTurn(t, func(t *testing.T, k testserver.Kind) {
		other := testserver.Redis
		if k == testserver.Redis || k == testserver.Redis82 {
			other = testserver.Valkey
		}
		dir := t.TempDir()
		path := programOf(t, testserver.Start(t, k))
		if err := os.Symlink(path, filepath.Join(dir, string(other)+"-server")); err != nil {
			t.Fatal(err)
		}
		t.Setenv("REDLATCH_SERVERS", dir)
		if said := verdict(t, other); !strings.Contains(said, "not a "+string(other)) {
			t.Errorf("a %s as %s-server: %q", k, other, said)
		}
	})
}

// programOf asks a server for the path of its program.
func programOf(t *testing.T, s *testserver.Server) string {
	t.Helper()
	info, _ := s.MustDo("INFO", "server").(string)
	for line := range strings.Lines(info) {
		if v, ok := strings.CutPrefix(line, "executable:"); ok {
			return strings.TrimSpace(v)
		}
	}
	t.Fatal("INFO without executable")
	return ""
}
