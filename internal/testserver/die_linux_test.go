package testserver_test

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/testserver"
)

// A test binary that is killed takes its servers with it. The test runs itself
// again as the one to be killed.
func TestServersDieWithTheTestProcess(t *testing.T) {
	const role = "TESTSERVER_VICTIM"
	if k := os.Getenv(role); k != "" {
		s := testserver.Start(t, testserver.Kind(k))
		fmt.Printf("\nserver %s\n", s.Addr())
		time.Sleep(time.Minute) // ends by SIGKILL
		t.Fatal("was not killed")
	}
	each(t, func(t *testing.T, k testserver.Kind) {
		victim := exec.Command(os.Args[0], "-test.run=^TestServersDieWithTheTestProcess$", "-test.v")
		victim.Env = append(os.Environ(), role+"="+string(k))
		victim.Stderr = os.Stderr
		out, err := victim.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := victim.Start(); err != nil {
			t.Fatal(err)
		}
		var addr string
		for in := bufio.NewScanner(out); addr == "" && in.Scan(); {
			addr, _ = strings.CutPrefix(in.Text(), "server ")
			if addr == in.Text() {
				addr = ""
			}
		}
		ping := func() error {
			c, err := net.Dial("tcp", addr)
			if err != nil {
				return err
			}
			return c.Close()
		}
		before := ping()
		_ = victim.Process.Kill()
		_ = victim.Wait()
		if addr == "" || before != nil {
			t.Fatalf("the victim's server at %q: %v", addr, before)
		}
		for end := time.Now().Add(20 * time.Second); ping() == nil; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("the server at %s outlived its parent", addr)
			}
		}
	})
}
