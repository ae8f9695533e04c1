// The race detector needs more memory than these processes may have.

//go:build !race

package faults

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/tests/internal/drivers"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// A hostile server, or whoever is between it and us without TLS, can send
// anything. Of most of it the client libraries make an error; some of it ends the
// process, and nothing that redlatch does could prevent that. Each way is tried by
// a process of its own, with little memory.

// A mode is a way to be hostile.
type mode struct {
	name string
	says string // what it sends where an answer, or a message, is due
	ends bool   // and then it closes the connection
	more string // or sends this again and again
	// fatal are the adapters whose library ends the process.
	fatal []string
	// either are those of which that depends on who reads it first, or on what ends
	// first: the memory, or the library's patience.
	either []string
}

var (
	goredisOnly = []string{"goredis"}
	sameCode    = []string{"rueidis", "valkeygo"} // a fork
	allThree    = []string{"goredis", "rueidis", "valkeygo"}
)

// refusal is the true answer to a take: somebody else has the lock.
const refusal = "*2\r\n:30000\r\n$38\r\n285475da-9152-4c83-822a-67ee2f116a79:1\r\n"

var noise = func() string {
	random, b := rand.New(rand.NewPCG(1, 2)), make([]byte, 1<<16)
	for i := range b {
		b[i] = byte(random.Uint32())
	}
	return string(b)
}()

// inAnswers are the modes where a script's answer is due.
var inAnswers = []mode{
	{name: "a text of 2^63-1 bytes", says: "$9223372036854775807\r\n", fatal: sameCode},
	{name: "a text of 2^40 bytes", says: "$1099511627776\r\n", fatal: allThree},
	{name: "a text of -2 bytes", says: "$-2\r\n", fatal: sameCode},
	{name: "a text of no number of bytes", says: "$many\r\n"},
	{name: "a text whose end is elsewhere", says: "$2\r\nabcdef\r\n"},
	{name: "a text in a part of 2^63-1 bytes", says: "$?\r\n;9223372036854775807\r\n", fatal: sameCode},
	{name: "a text in a part of -2 bytes", says: "$?\r\n;-2\r\n", fatal: sameCode},
	{name: "an error of 2^63-1 bytes", says: "!9223372036854775807\r\n", fatal: sameCode},
	{name: "a list of 2^63-1", says: "*9223372036854775807\r\n", fatal: sameCode},
	{name: "a list of 2^40", says: "*1099511627776\r\n", fatal: allThree},
	{name: "a list of -2", says: "*-2\r\n", fatal: sameCode},
	{name: "a list without an end", says: "*?\r\n", more: "$4096\r\n" + strings.Repeat("a", 4096) + "\r\n"},
	{name: "a map of 2^62", says: "%4611686018427387904\r\n", fatal: sameCode},
	{name: "a map of -2", says: "%-2\r\n", fatal: sameCode},
	{name: "a map", says: "%1\r\n+a\r\n:1\r\n"},
	{name: "a map whose key is a list", says: "%1\r\n*1\r\n:1\r\n:1\r\n"},
	{name: "a set", says: "~2\r\n:1\r\n:1\r\n"},
	{name: "an attribute", says: "|1\r\n+a\r\n:1\r\n" + refusal},
	{name: "an attribute of nothing", says: "|0\r\n", ends: true},
	{name: "an attribute of 2^62", says: "|4611686018427387904\r\n", fatal: sameCode},
	{name: "attributes without an end", more: "|1\r\n+a\r\n:1\r\n", either: allThree},
	{name: "a list in a list, ten million deep", says: strings.Repeat("*1\r\n", 10_000_000), either: allThree},
	{name: "a null, a truth, a number, a large one", says: "*4\r\n_\r\n#t\r\n,nan\r\n(123456789012345678901234567890\r\n"},
	{name: "a number that is none", says: ":1e9\r\n"},
	{name: "a number of 100,000 digits", says: ":" + strings.Repeat("9", 100_000) + "\r\n"},
	{name: "a text that should say of which kind it is", says: "=1\r\na\r\n"},
	{name: "a line without an end", says: "+", more: strings.Repeat("a", 4096), either: goredisOnly},
	{name: "a length without an end", says: "*", more: strings.Repeat("1", 4096)},
	{name: "an empty line", says: "\r\n"},
	{name: "half of a line's end", says: ":1\n"},
	{name: "a kind that is none", says: "@1\r\n"},
	{name: "binary noise", says: noise},
	{name: "noise without an end", more: noise},
	{name: "half an answer", says: refusal[:20], ends: true},
	{name: "half an answer, and silence", says: refusal[:20]},
	{name: "nothing", ends: true},
	{name: "another command's answer", says: "+PONG\r\n"},
	{name: "lists of nothing", says: "*2\r\n*0\r\n*-1\r\n"},
	{name: "a redirection to nowhere", says: "-MOVED\r\n"},
	{name: "a redirection to no address", says: "-MOVED 99999999999999999999 :::\r\n"},
	{name: "an error of nothing", says: "-\r\n"},
	{name: "a second answer", says: refusal + ":1\r\n", either: sameCode},
	{name: "answers without an end", says: refusal, more: ":1\r\n", either: sameCode},
	{name: "a message to nobody", says: ">3\r\n+message\r\n+nobody\r\n+0\r\n" + refusal},
	{name: "the end of a subscription that was none", says: ">3\r\n+unsubscribe\r\n+nobody\r\n:0\r\n" + refusal},
	{name: "a subscription that nobody asked for", says: ">3\r\n+subscribe\r\n+nobody\r\n:1\r\n" + refusal},
	{name: "a push of nothing", says: ">0\r\n" + refusal},
	{name: "a push of -2", says: ">-2\r\n" + refusal, fatal: sameCode},
	{name: "a push of 2^63-1", says: ">9223372036854775807\r\n", fatal: sameCode},
	{name: "a push of a null", says: ">1\r\n$-1\r\n" + refusal},
	{name: "a push of lists", says: ">2\r\n*0\r\n*0\r\n" + refusal},
	{name: "pushes without an end", more: ">2\r\n+a\r\n+b\r\n", either: allThree},
}

// inMessages are the modes where messages are due.
var inMessages = []mode{
	{name: "a text of 2^63-1 bytes", says: ">3\r\n+message\r\n$9223372036854775807\r\n", fatal: sameCode},
	{name: "a text of 2^40 bytes", says: ">3\r\n+message\r\n$1099511627776\r\n", fatal: allThree},
	{name: "a message of 2^63-1 parts", says: ">9223372036854775807\r\n", fatal: sameCode},
	{name: "a message of 2^40 parts", says: ">1099511627776\r\n", fatal: allThree},
	{name: "a message of -2 parts", says: ">-2\r\n", fatal: sameCode},
	{name: "a message of nothing", says: ">0\r\n"},
	{name: "a message of one part", says: ">1\r\n+message\r\n"},
	{name: "a message of numbers", says: ">3\r\n+message\r\n:1\r\n:2\r\n"},
	{name: "a message of nulls", says: ">3\r\n+message\r\n_\r\n_\r\n"},
	{name: "a message of lists", says: ">3\r\n*0\r\n*0\r\n*0\r\n"},
	{name: "a message to nobody", says: ">3\r\n+message\r\n+nobody\r\n+0\r\n"},
	{name: "a pattern's message", says: ">4\r\n+pmessage\r\n+*\r\n+nobody\r\n+0\r\n"},
	{name: "the end of a subscription that was none", says: ">3\r\n+unsubscribe\r\n+nobody\r\n:0\r\n"},
	{name: "the end of all subscriptions", says: ">3\r\n+unsubscribe\r\n_\r\n:0\r\n"},
	{name: "an invalidation", says: ">2\r\n+invalidate\r\n:1\r\n"},
	{name: "a kind that is none", says: ">3\r\n+hello\r\n+a\r\n+b\r\n"},
	{name: "a list in a list, ten million deep", says: strings.Repeat("*1\r\n", 10_000_000), either: allThree},
	{name: "an answer that nobody waits for", says: ":1\r\n", fatal: sameCode},
	{name: "an error that nobody waits for", says: "-ERR what is that\r\n", fatal: sameCode},
	{name: "binary noise", says: noise},
	{name: "half a message", says: ">3\r\n+mess", ends: true},
	{name: "half a message, and silence", says: ">3\r\n+mess"},
	{name: "a line without an end", says: "+", more: strings.Repeat("a", 4096), either: goredisOnly},
	{name: "messages without an end", more: ">3\r\n+message\r\n+nobody\r\n+0\r\n"},
}

const (
	hostileRole   = "REDLATCH_HOSTILE" // of a child: adapter and address
	hostileMemory = 512 << 20          // that it may have
	hostilePace   = 64 << 20           // bytes a second, of what has no end
	hostileTime   = 15 * time.Second   // for which it goes on
)

func TestHostileServersEndNoProcessButInTheseWays(t *testing.T) {
	if role := os.Getenv(hostileRole); role != "" {
		beVictim(t, role)
		return
	}
	if testing.Short() {
		t.Skip("it takes two minutes")
	}
	library := libraries(t)
	slots := make(chan struct{}, 4) // they wait, most of the time
	for place, modes := range map[string][]mode{"answers": inAnswers, "messages": inMessages} {
		for _, m := range modes {
			for _, a := range drivers.Adapters {
				t.Run(place+"/"+m.name+"/"+a.Name, func(t *testing.T) {
					t.Parallel()
					slots <- struct{}{}
					defer func() { <-slots }()
					died := victimDies(t, a.Name, place == "messages", m)
					switch fatal := slices.Contains(m.fatal, a.Name); {
					case slices.Contains(m.either, a.Name):
					case died != "" && !fatal:
						t.Errorf("%s ends the process: %s", library[a.Name], died)
					case died == "" && fatal:
						t.Errorf("%s survives that now: take it out of fatal, and out of docs/security.md", library[a.Name])
					}
				})
			}
		}
	}
}

// libraries returns which version of a library is behind each adapter.
func libraries(t *testing.T) map[string]string {
	t.Helper()
	required, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	by := map[string]string{}
	for line := range strings.Lines(string(required)) {
		for adapter, path := range map[string]string{"goredis": "redis/go-redis", "rueidis": "redis/rueidis", "valkeygo": "valkey-io/valkey-go"} {
			if words := strings.Fields(line); len(words) > 1 && strings.HasPrefix(words[0], "github.com/"+path) {
				by[adapter] = words[0] + " " + words[1]
			}
		}
	}
	return by
}

// victimDies runs a client against a server that is hostile in some way, and
// returns why its process ended, if not as it was to.
func victimDies(t *testing.T, adapter string, messages bool, m mode) string {
	t.Helper()
	s := newHostile(t, messages, m)
	ctx, cancel := context.WithTimeout(t.Context(), locktest.Generous)
	defer cancel()
	victim := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestHostileServersEndNoProcessButInTheseWays$", "-test.v")
	victim.Env = append(os.Environ(), hostileRole+"="+adapter+" "+s.l.Addr().String(), "GOTRACEBACK=single", "GOMAXPROCS=1", "GOMEMLIMIT=200MiB")
	var out bytes.Buffer
	victim.Stdout, victim.Stderr = &out, &out
	stay, err := victim.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- victim.Wait() }()
	select {
	case <-s.told: // all of what it was to be told
		_ = stay.Close()
		err = <-ended
	case err = <-ended:
		_ = stay.Close()
	}
	if ctx.Err() != nil {
		return "it hangs\n" + first(out.String(), 3000)
	}
	select {
	case <-s.begun:
	default:
		t.Fatalf("it was never told anything: %s", out.String())
	}
	var exit *exec.ExitError
	switch {
	case err == nil && strings.Contains(out.String(), "alive"):
		return ""
	case !errors.As(err, &exit):
		t.Fatalf("%v: %s", err, out.String())
	case exit.ExitCode() == 1: // it has failed, and not died
		t.Error(out.String())
		return ""
	}
	for line := range strings.Lines(out.String()) {
		if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") || strings.HasPrefix(line, "runtime: goroutine stack") {
			return line
		}
	}
	return first(out.String(), 3000)
}

func first(text string, n int) string { return text[:min(n, len(text))] }

// beVictim makes calls, whose errors it does not mind. It ends when they have
// ended, and it has heard all that the server says.
func beVictim(t *testing.T, role string) {
	name, addr, _ := strings.Cut(role, " ")
	limit := syscall.Rlimit{Cur: hostileMemory, Max: hostileMemory}
	const data = 2 // RLIMIT_DATA
	if err := syscall.Setrlimit(data, &limit); err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(drivers.Adapters, func(a drivers.Adapter) bool { return a.Name == name })
	place := drivers.Single(addr)
	place.Timeout = 1500 * time.Millisecond
	d, end := drivers.Adapters[i].OpenUntil(t, place)
	defer end()
	c, err := redlatch.New(d, redlatch.Config{OutageTimeout: 3 * time.Second, CloseTimeout: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	over := make(chan struct{})
	go func() {
		defer close(over)
		_, _ = io.Copy(io.Discard, os.Stdin)
	}()
	for stays := true; stays; {
		h, err := c.Lock("orders").TryAcquire(bg, time.Second)
		if err == nil { // it was told that it has it
			err = h.Release(bg)
		}
		fmt.Println(err)
		select {
		case <-over:
			stays = false
		default:
		}
	}
	fmt.Println("alive")
}

// A hostile is a server that is hostile in some way, once.
type hostile struct {
	l        net.Listener
	m        mode
	messages bool
	once     sync.Once
	begun    chan struct{} // closed when it begins to be
	told     chan struct{} // closed when it has been: its victim has gone, or has heard all
}

func newHostile(t *testing.T, messages bool, m mode) *hostile {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &hostile{l: l, m: m, messages: messages, begun: make(chan struct{}), told: make(chan struct{})}
	var open sync.WaitGroup
	t.Cleanup(func() {
		_ = l.Close()
		open.Wait()
	})
	open.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			open.Go(func() { s.serve(conn) })
		}
	})
	return s
}

// serve answers as a server does, but for what is hostile.
func (s *hostile) serve(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	for {
		words, err := command(in)
		if err != nil {
			return
		}
		answer := "+OK\r\n"
		switch name := strings.ToLower(words[0]); name {
		case "hello":
			answer = "%7\r\n+server\r\n+redis\r\n+version\r\n+7.2.0\r\n+proto\r\n:3\r\n+id\r\n:1\r\n+mode\r\n+standalone\r\n+role\r\n+master\r\n+modules\r\n*0\r\n"
		case "ping":
			answer = "+PONG\r\n"
		case "subscribe", "unsubscribe":
			answer = ""
			for _, channel := range words[1:] {
				answer += fmt.Sprintf(">3\r\n+%s\r\n$%d\r\n%s\r\n:1\r\n", name, len(channel), channel)
			}
		case "eval", "evalsha":
			answer = refusal
		}
		due := answer == refusal
		if s.messages {
			due = strings.EqualFold(words[0], "subscribe")
		}
		if due {
			first := false
			s.once.Do(func() { first = true })
			if first {
				if !s.messages {
					answer = ""
				}
				s.beHostile(conn, answer)
				if s.m.ends {
					return
				}
				continue
			}
		}
		if _, err := io.WriteString(conn, answer); err != nil {
			return
		}
	}
}

// beHostile says what it is to say, and waits until the other end has had time to
// hear it.
func (s *hostile) beHostile(conn net.Conn, before string) {
	defer close(s.told)
	close(s.begun)
	_, err := io.WriteString(conn, before+s.m.says)
	if s.m.more == "" || err != nil {
		return
	}
	chunk := []byte(strings.Repeat(s.m.more, 1+1<<16/len(s.m.more)))
	for end := time.Now().Add(hostileTime); err == nil && time.Now().Before(end); {
		time.Sleep(time.Duration(len(chunk)) * time.Second / hostilePace)
		_, err = conn.Write(chunk)
	}
}

// command reads one.
func command(in *bufio.Reader) (words []string, err error) {
	number := func(kind byte) (int, error) {
		line, err := in.ReadString('\n')
		if err != nil || len(line) < 4 || line[0] != kind {
			return 0, errors.Join(err, errors.New("no command"))
		}
		return strconv.Atoi(strings.TrimSpace(line[1:]))
	}
	n, err := number('*')
	for range n {
		size, err := number('$')
		if err != nil {
			return nil, err
		}
		word := make([]byte, size+2)
		if _, err := io.ReadFull(in, word); err != nil {
			return nil, err
		}
		words = append(words, string(word[:size]))
	}
	if err == nil && len(words) == 0 {
		err = errors.New("no command")
	}
	return words, err
}
