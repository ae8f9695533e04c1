package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/redlatch/redlatch/internal/leaktest"
	"github.com/redlatch/redlatch/internal/testserver"
)

// The tests run the program as its users do: in processes of its own. The test
// binary is the program when asMain is set.
const asMain = "REDLATCH_TEST_AS_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asMain) != "" {
		main()
		os.Exit(0)
	}
	if signal.Ignored(syscall.SIGHUP) { // by nohup, and so would be what the tests start
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	code, err := withTempDir(func() int { return leaktest.Run(m.Run) })
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(code)
}

// withTempDir gives the tests a temporary directory that is removed even if the
// run is killed: what they run may be in the middle of something.
func withTempDir(run func() int) (code int, err error) {
	dir, err := os.MkdirTemp("", "redlatch-tests-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	leave, err := testserver.Guard(dir)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, leave()) }()
	if err := os.Setenv("TMPDIR", dir); err != nil {
		return 0, err
	}
	return run(), nil
}

// patience is how long a test waits for what must happen.
const patience = time.Minute

const password = "hunter2-Tr0ub4dor"

// A redis is an embedded server with a password.
type redis struct {
	*miniredis.Miniredis
	url string
}

func newRedis(tb testing.TB) *redis {
	tb.Helper()
	m := miniredis.NewMiniRedis()
	m.ClockTTL(true)
	m.RequireAuth(password)
	if err := m.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(m.Close)
	return &redis{m, "redis://:" + password + "@" + m.Addr() + "?protocol=2"}
}

// holder is an owner as Redisson names them.
const holder = "5f1b3c2e-6d0a-4d8e-9a51-0123456789ab:1"

// hold gives the lock to somebody else.
func (r *redis) hold(name string, ttl time.Duration) {
	r.HSet(name, holder, "1")
	r.SetTTL(name, ttl)
}

// command prepares the program. It has no controlling terminal, so that the
// tests behave alike everywhere.
func (r *redis) command(args ...string) *exec.Cmd {
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	cmd := exec.Command(exe, args...)
	cmd.Env = append(environ(), "REDLATCH_URL="+r.url)
	cmd.SysProcAttr = newSession()
	cmd.WaitDelay = patience
	return cmd
}

// environ is what every program is told. Under the race detector it would wait
// a second before it exits.
func environ() []string {
	return append(os.Environ(), asMain+"=1", "GORACE=atexit_sleep_ms=0 "+os.Getenv("GORACE"))
}

type result struct {
	out, err string
	code     int
}

// run runs the program to its end.
func (r *redis) run(t *testing.T, args ...string) result {
	t.Helper()
	return finish(t, r.command(args...))
}

// asked runs a command that asks all clients, again if the machine is too busy to
// let them answer in time.
func (r *redis) asked(t *testing.T, args ...string) result {
	t.Helper()
	for try := 1; ; try++ {
		res := r.run(t, args...)
		if try == 10 || !strings.Contains(res.err, "it took more than") {
			return res
		}
	}
}

func finish(t *testing.T, cmd *exec.Cmd) result {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	timer := time.AfterFunc(patience, func() {
		if cmd.Process != nil {
			_ = cmd.Process.Kill()
		}
	})
	defer timer.Stop()
	code := exitCode(cmd.Run())
	res := result{out.String(), errs.String(), code}
	if strings.Contains(res.out+res.err, password) {
		t.Errorf("%q shows the password:\n%s%s", cmd.Args, res.out, res.err)
	}
	return res
}

func exitCode(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	return -2
}

// A job is a program that is running.
type job struct {
	t    *testing.T
	cmd  *exec.Cmd
	done chan struct{}
	code int

	mu   sync.Mutex
	text bytes.Buffer // standard output and error
}

// start starts the program and makes sure that it ends with the test.
func start(t *testing.T, cmd *exec.Cmd) *job {
	t.Helper()
	j := &job{t: t, cmd: cmd, done: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = j, j
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	j.watch()
	return j
}

// watch waits for the end of the program, and makes sure that it ends with the
// test.
func (j *job) watch() {
	t, cmd := j.t, j.cmd
	go func() {
		j.code = exitCode(cmd.Wait())
		close(j.done)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-j.done
		if strings.Contains(j.output(), password) {
			t.Errorf("%q shows the password:\n%s", cmd.Args, j.output())
		}
	})
}

func (j *job) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *job) output() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// says waits until the program has written text.
func (j *job) says(text string) {
	j.t.Helper()
	eventually(j.t, "output of "+text, func() bool { return strings.Contains(j.output(), text) }, j.output)
}

func (j *job) signal(s os.Signal) {
	j.t.Helper()
	if err := j.cmd.Process.Signal(s); err != nil {
		j.t.Fatal(err)
	}
}

// wait waits for the program's end and returns its exit code.
func (j *job) wait() int {
	j.t.Helper()
	select {
	case <-j.done:
		return j.code
	case <-time.After(patience):
		j.t.Fatalf("%q does not end; it said:\n%s", j.cmd.Args, j.output())
		return 0
	}
}

// ends waits for the program's end with that exit code.
func (j *job) ends(want int) {
	j.t.Helper()
	if code := j.wait(); code != want {
		j.t.Errorf("exit %d, want %d: %s", code, want, j.output())
	}
}

// isFree checks that nobody has a lock.
func (r *redis) isFree(t *testing.T, name string) {
	t.Helper()
	if r.Exists(name) {
		t.Errorf("lock %q was not released", name)
	}
}

// eventually waits for a state that must come.
func eventually(t *testing.T, what string, ok func() bool, explain ...func() string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for !ok() {
		select {
		case <-ctx.Done():
			text := ""
			for _, f := range explain {
				text += "\n" + f()
			}
			t.Fatalf("never happened: %s%s", what, text)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// long leaves a test out of make test, for which it takes too long.
func long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("a long story, for make check")
	}
}

func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%q is missing in:\n%s", p, text)
		}
	}
}

// document decodes the JSON on standard output, and refuses fields that the
// contract does not have.
func document[T any](t *testing.T, res result) T {
	t.Helper()
	var v T
	d := json.NewDecoder(strings.NewReader(res.out))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil || d.More() || res.code != 0 || res.err != "" {
		t.Fatalf("%v: %+v", err, res)
	}
	return v
}
