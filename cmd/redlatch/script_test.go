package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/redlatch/redlatch/internal/heldport"
)

var update = flag.Bool("update", false, "let the scripts' outputs be those of now; look at what has changed")

// The scripts in testdata/script tell what a user types and sees. Each has an
// embedded server of its own, on which time stands still, and these commands
// beside testscript's:
//
//	redlatch ARG...          the program ends with exit code 0 and says nothing on standard error
//	exits CODE ARG...        the program ends with CODE
//	fails CODE TEXT ARG...   the program ends with CODE and no result; TEXT is on standard error, where redlatch signs each line
//	until PATTERN ARG...     runs the program again and again until PATTERN matches what it says
//	redis ARG...             sends a command to the server, and prints the reply
//	hold NAME...             gives locks to $HOLDER, for an hour
//	into VAR                 the variable VAR is what was printed last
//	dump                     prints what is stored
//
// Whatever the program does, it shows no password.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:   "testdata/script",
		Setup: setUpScript,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"redlatch": positive(func(ts *testscript.TestScript, args []string) {
				wantCode(ts, "0", runProgram(ts, args))
				if text := ts.ReadFile("stderr"); text != "" {
					ts.Fatalf("it complains")
				}
			}),
			"exits": positive(func(ts *testscript.TestScript, args []string) { wantCode(ts, args[0], runProgram(ts, args[1:])) }),
			"fails": positive(func(ts *testscript.TestScript, args []string) { failProgram(ts, args[0], args[1], args[2:]) }),
			"until": positive(func(ts *testscript.TestScript, args []string) { awaitProgram(ts, args[0], args[1:]) }),
			"redis": positive(func(ts *testscript.TestScript, args []string) {
				fmt.Fprintln(ts.Stdout(), serverOf(ts).do(ts, args...))
			}),
			"hold": positive(func(ts *testscript.TestScript, names []string) {
				for _, name := range names {
					serverOf(ts).hold(name, time.Hour)
				}
			}),
			"into": positive(func(ts *testscript.TestScript, args []string) {
				ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile("stdout")))
			}),
			"dump": positive(func(ts *testscript.TestScript, _ []string) { fmt.Fprint(ts.Stdout(), serverOf(ts).Dump()) }),
		},
		RequireUniqueNames: true,
		UpdateScripts:      *update,
		Deadline:           time.Now().Add(5 * patience), // a program that does not end fails its script, not the whole run
	})
}

// positive is a command that "!" may not stand before.
func positive(f func(ts *testscript.TestScript, args []string)) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if neg {
			ts.Fatalf("say how it fails: exits CODE, or fails CODE TEXT")
		}
		f(ts, args)
	}
}

// A scriptServer is the server of a script, and a client of it.
type scriptServer struct {
	*redis
	client rueidis.Client
}

type serverKey struct{}

func serverOf(ts *testscript.TestScript) *scriptServer { return ts.Value(serverKey{}).(*scriptServer) }

func (s *scriptServer) do(ts *testscript.TestScript, args ...string) any {
	reply, err := s.client.Do(context.Background(), s.client.B().Arbitrary(args...).Build()).ToAny()
	ts.Check(err)
	return reply
}

func setUpScript(e *testscript.Env) error {
	t := e.T().(testing.TB)
	r := newRedis(t)
	r.ClockTTL(false)
	r.SetTime(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{r.Addr()}, Password: password, DisableCache: true, AlwaysRESP2: true})
	if err != nil {
		return err
	}
	e.Defer(client.Close)
	e.Values[serverKey{}] = &scriptServer{r, client}

	program, err := os.Executable()
	if err != nil {
		return err
	}
	e.Setenv("REDLATCH", program)
	for _, variable := range environ() {
		if name, value, _ := strings.Cut(variable, "="); name == asMain || name == "GORACE" {
			e.Setenv(name, value)
		}
	}
	e.Setenv("TZ", "UTC")
	e.Setenv("REDLATCH_URL", r.url)
	e.Setenv("ADDR", r.Addr())
	e.Setenv("NOWHERE", heldport.Refusing(t))
	e.Setenv("PASSWORD", password)
	e.Setenv("HOLDER", holder)
	e.Setenv("CLIENT", strings.TrimSuffix(holder, ":1"))
	e.Setenv("ESC", "\x1b")
	e.Setenv("NEWLINE", "\n")
	return nil
}

// runProgram runs the program to its end.
func runProgram(ts *testscript.TestScript, args []string) (code int) {
	code = exitCode(ts.Exec(ts.Getenv("REDLATCH"), args...))
	if strings.Contains(ts.ReadFile("stdout")+ts.ReadFile("stderr"), password) {
		ts.Fatalf("it shows the password")
	}
	return code
}

// awaitProgram runs the program until it says what it must say some time.
func awaitProgram(ts *testscript.TestScript, pattern string, args []string) {
	want, err := regexp.Compile(pattern)
	ts.Check(err)
	for end := time.Now().Add(patience); ; {
		runProgram(ts, args)
		if want.MatchString(ts.ReadFile("stdout") + ts.ReadFile("stderr")) {
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("it never says %s", pattern)
		}
	}
}

func wantCode(ts *testscript.TestScript, want string, got int) {
	if strconv.Itoa(got) != want {
		ts.Fatalf("exit code %d, want %s", got, want)
	}
}

// failProgram runs the program, which fails. In its arguments "a-while" is 50 ms,
// for what ends with a message when the time is over. A busy machine that has not
// even heard from the server by then gets more.
func failProgram(ts *testscript.TestScript, code, text string, args []string) {
	at := slices.Index(args, "a-while")
	waits := []string{"50ms", "1s", "20s"}
	if at < 0 {
		waits = waits[:1]
	}
	var got int
	for _, wait := range waits {
		if at >= 0 {
			args[at] = wait
		}
		if got = runProgram(ts, args); strings.Contains(ts.ReadFile("stderr"), text) {
			break
		}
	}
	wantCode(ts, code, got)
	if !strings.Contains(ts.ReadFile("stderr"), text) || ts.ReadFile("stdout") != "" {
		ts.Fatalf("want %q on standard error, and nothing on standard output", text)
	}
	for line := range strings.Lines(ts.ReadFile("stderr")) {
		if !strings.HasPrefix(line, "redlatch: ") {
			ts.Fatalf("a line that does not say who speaks: %q", line)
		}
	}
}
