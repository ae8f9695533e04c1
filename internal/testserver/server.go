// Package testserver runs real Redis and Valkey servers for tests, without
// containers: each one a process of its own on 127.0.0.1 with a temporary
// directory, gone when its test is over, or the process of the test.
//
// If a server is not installed, the test fails and says what to install. It is
// never skipped.
//
// A client that connects without a name is the default user, which may run the
// commands that redlatch needs and no others: see [Open]. Tests send their own
// commands through Do, which is an administrator.
package testserver

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/wire"

	"github.com/redlatch/redlatch/internal/heldport"
)

const (
	startLimit = 2 * time.Minute // from start to the first PONG, on a busy machine
	doLimit    = 2 * time.Minute // for a reply, which a test that looks at all keys may wait for
	attempts   = 5               // where ports cannot be held, and one is taken in between
)

// Server is one server process. Its methods may be called by any goroutine
// until the test ends; what they cannot do is an error of the test.
type Server struct {
	tb   testing.TB
	kind Kind
	path string
	dir  string
	args []string // whole command line
	addr string

	mu   sync.Mutex // guards proc
	proc *process

	doMu sync.Mutex // one Do at a time
	conn *client
}

// process is one run of the program.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended and was waited for
}

// Start runs a server of kind k with its defaults, except that it stores
// nothing, and extraArgs ("--appendonly", "yes") behind these. When it returns
// the server answers. The process is killed at the end of the test.
func Start(tb testing.TB, k Kind, extraArgs ...string) *Server {
	tb.Helper()
	return start(tb, k, func(version, port, dir string) ([]string, error) {
		return standalone(version, port, dir, extraArgs...), nil
	})
}

// StartReplica runs a replica of primary with the arguments that Start takes. When
// it returns the replica answers; it may not have the data yet.
func StartReplica(tb testing.TB, primary *Server, extraArgs ...string) *Server {
	tb.Helper()
	host, port, _ := net.SplitHostPort(primary.Addr())
	return Start(tb, primary.kind, append(slices.Clone(extraArgs), "--replicaof", host, port)...)
}

// standalone is the command line of a server that stores nothing.
func standalone(version, port, dir string, extraArgs ...string) []string {
	return append([]string{
		"--port", port, "--bind", "127.0.0.1", "--dir", dir,
		"--save", "", "--appendonly", "no", "--daemonize", "no",
		"--masteruser", Admin, "--masterauth", AdminPassword,
	}, withUsers(version, extraArgs)...)
}

// start is Start with the command line that commandLine makes for a version (as
// package acl has them), a port and a directory. It is called once for each port
// that is tried.
func start(tb testing.TB, k Kind, commandLine func(version, port, dir string) ([]string, error)) *Server {
	tb.Helper()
	path, err := find(k)
	if err != nil {
		tb.Fatalf("testserver: %v", err)
	}
	dir, err := newRoom(k)
	if err != nil {
		tb.Fatalf("testserver: %v", err)
	}
	s := &Server{tb: tb, kind: k, path: path, dir: dir}
	tb.Cleanup(func() {
		s.hangUp()
		s.stop()
		if err := leaveRoom(dir); err != nil {
			tb.Errorf("testserver: %v", err)
		}
	})
	for try := 1; ; try++ {
		port := heldport.HoldNode(tb) // across restarts, too
		s.addr = heldport.Addr(port)
		if s.args, err = commandLine(versionOf(path), port, s.dir); err != nil {
			tb.Fatalf("%v", err)
		}
		err = s.run()
		if err == nil {
			return s
		}
		if !errors.Is(err, errPortTaken) || try == attempts {
			tb.Fatalf("testserver: %s did not start: %v", path, err)
		}
	}
}

var errPortTaken = errors.New("the port was taken in between")

// run starts the process and waits until it answers. On error it has ended.
func (s *Server) run() error {
	logged, err := os.OpenFile(s.logFile(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer logged.Close()
	from, err := logged.Seek(0, 2)
	if err != nil {
		return err
	}
	proc, err := launch(s.path, s.dir, logged, s.args)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.proc = proc
	s.mu.Unlock()

	err = s.ready(proc)
	if err == nil {
		return nil
	}
	s.stop()
	b, readErr := os.ReadFile(s.logFile())
	if readErr != nil || int64(len(b)) < from {
		return err
	}
	b = b[from:]
	if bytes.Contains(b, []byte("Address already in use")) || errors.Is(err, errPortTaken) {
		return errPortTaken
	}
	return fmt.Errorf("%w; it says:\n%s", err, b)
}

// launch starts the program on a thread of its own: on Linux the system ends
// the child when the thread that started it ends, which for other threads of a
// Go program can be long before the program does.
func launch(path, dir string, out *os.File, args []string) (*process, error) {
	p := &process{cmd: exec.Command(path, args...), done: make(chan struct{})}
	p.cmd.Dir = dir
	p.cmd.Stdout, p.cmd.Stderr = out, out
	dieWithParent(p.cmd)
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.done)
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // ends by a signal as a rule
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// ready waits until this very process answers on the port, rather than one
// that took the port before it.
func (s *Server) ready(proc *process) error {
	var last error
	for end := time.Now().Add(startLimit); time.Now().Before(end); {
		select {
		case <-proc.done:
			return fmt.Errorf("it ended at once (%v)", proc.cmd.ProcessState)
		case <-time.After(5 * time.Millisecond):
		}
		var info string
		if info, last = s.info(); last != nil {
			continue
		}
		if field(info, "process_id") != strconv.Itoa(proc.cmd.Process.Pid) {
			return errPortTaken
		}
		if is := exactly(info); !s.kind.is(is) {
			return fmt.Errorf("it is not a %s server, but %s", s.kind, is)
		}
		// INFO is answered while a server still loads its data, PING is not.
		if _, last = s.Do("PING"); last == nil {
			return nil
		}
	}
	return fmt.Errorf("no answer within %v: %w", startLimit, last)
}

// exactly returns from what INFO says which server says it, with its whole
// version.
func exactly(info string) Kind {
	if version := field(info, "valkey_version"); version != "" {
		return Valkey + "-" + Kind(version)
	}
	return Redis + "-" + Kind(field(info, "redis_version"))
}

// is says whether the server with that version is one of kind k. The oldest is no
// other kind.
func (k Kind) is(exactly Kind) bool {
	of := func(k Kind) bool { return strings.HasPrefix(string(exactly), string(k)) }
	return of(k) && (k == Redis62 || !of(Redis62))
}

func (s *Server) info() (string, error) {
	v, err := s.Do("INFO", "server")
	if err != nil {
		return "", err
	}
	info, _ := v.(string)
	return info, nil
}

// field returns one line of an INFO reply, or "".
func field(info, name string) string {
	for line := range strings.Lines(info) {
		if v, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

func (s *Server) logFile() string { return filepath.Join(s.dir, "server.log") }

// Kind returns what was given to Start.
func (s *Server) Kind() Kind { return s.kind }

// Addr returns the server's "127.0.0.1:port". It stays the same across Restart.
func (s *Server) Addr() string { return s.addr }

// Dir returns the directory in which the server runs.
func (s *Server) Dir() string { return s.dir }

// Log returns what the server has printed, in all of its runs.
func (s *Server) Log() string {
	b, err := os.ReadFile(s.logFile())
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// Version returns the version of the running server, such as "7.0.15".
func (s *Server) Version() string {
	info, err := s.info()
	if err != nil {
		s.tb.Errorf("testserver: %v", err)
	}
	if v := field(info, "valkey_version"); v != "" {
		return v
	}
	return field(info, "redis_version")
}

// Dial opens a TCP connection to the server.
func (s *Server) Dial(ctx context.Context) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", s.addr)
}

// Do runs one command on a RESP2 connection that the Server keeps for this, on
// which everything is allowed. The reply is a string, an int64, a []any of
// replies, or nil. An error reply comes as a [ReplyError]; after any other error
// it is unknown whether the command ran. Do never sends a command twice.
func (s *Server) Do(args ...string) (any, error) {
	s.doMu.Lock()
	defer s.doMu.Unlock()
	if s.conn == nil {
		ctx, cancel := context.WithTimeout(context.Background(), doLimit)
		defer cancel()
		conn, err := s.Dial(ctx)
		if err != nil {
			return nil, err
		}
		to := &client{conn: conn, in: bufio.NewReader(conn)}
		if !isOpen(s.args) {
			if _, err := to.do(doLimit, "AUTH", Admin, AdminPassword); err != nil {
				conn.Close()
				return nil, err
			}
		}
		s.conn = to
	}
	v, err := s.conn.do(doLimit, args...)
	var reply ReplyError
	if err != nil && !errors.As(err, &reply) {
		s.conn.conn.Close()
		s.conn = nil
	}
	return v, err
}

// MustDo is Do for the test's own goroutine: an error ends the test.
func (s *Server) MustDo(args ...string) any {
	s.tb.Helper()
	v, err := s.Do(args...)
	if err != nil {
		s.tb.Fatalf("testserver: %s %q: %v", s.kind, args, err)
	}
	return v
}

// Keys returns the keys that the server has, but for the notes of clients who they
// are: those stay until their time is over.
func (s *Server) Keys() (keys []string) {
	s.tb.Helper()
	all, _ := s.MustDo("KEYS", "*").([]any)
	for _, v := range all {
		if key, ok := v.(string); ok && !strings.HasPrefix(key, wire.Client+":") {
			keys = append(keys, key)
		}
	}
	return keys
}

func (s *Server) hangUp() {
	s.doMu.Lock()
	defer s.doMu.Unlock()
	if s.conn != nil {
		s.conn.conn.Close()
		s.conn = nil
	}
}

// stop kills the process, also a paused one, and waits until it has ended.
func (s *Server) stop() {
	s.mu.Lock()
	proc := s.proc
	s.mu.Unlock()
	if proc == nil {
		return
	}
	_ = proc.cmd.Process.Kill() // fails only if it has ended
	<-proc.done
}

// Kill ends the server like a crash (SIGKILL) and waits until it is gone. A
// server that has ended stays so.
func (s *Server) Kill() {
	s.stop()
	s.hangUp()
}

// Restart kills the server if it runs, starts it again with the same port,
// directory and arguments, and waits until it answers. Without persistence
// among the arguments it comes back empty.
func (s *Server) Restart() {
	s.tb.Helper()
	s.Kill()
	var err error
	for range attempts {
		if err = s.run(); err == nil {
			return
		}
		if !errors.Is(err, errPortTaken) {
			break
		}
		time.Sleep(100 * time.Millisecond) // the program that has the port may end
	}
	s.tb.Errorf("testserver: %s did not start again: %v", s.kind, err)
}

// Pause freezes the process (SIGSTOP): connections stay open and nothing
// answers. The test fails on systems that cannot do this.
func (s *Server) Pause() { s.signal(pause) }

// Resume lets a paused process go on (SIGCONT).
func (s *Server) Resume() { s.signal(resume) }

func (s *Server) signal(f func(*os.Process) error) {
	s.tb.Helper()
	s.mu.Lock()
	proc := s.proc
	s.mu.Unlock()
	if err := f(proc.cmd.Process); err != nil {
		s.tb.Errorf("testserver: %s: %v", s.kind, err)
	}
}
