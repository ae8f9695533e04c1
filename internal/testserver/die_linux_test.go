package testserver_test

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/testserver"
)

// A test binary that is killed takes its servers with it, and what they have
// written. The test runs itself again as the one to be killed.
func TestServersDieWithTheTestProcess(t *testing.T) {
	const role = "TESTSERVER_VICTIM"
	if k := os.Getenv(role); k != "" {
		s := testserver.Start(t, testserver.Kind(k), "--appendonly", "yes")
		fmt.Printf("\nserver %s %s\n", s.Addr(), s.Dir())
		time.Sleep(5 * time.Minute) // ends by SIGKILL
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
		var addr, dir string
		for in := bufio.NewScanner(out); addr == "" && in.Scan(); {
			if said, ok := strings.CutPrefix(in.Text(), "server "); ok {
				addr, dir, _ = strings.Cut(said, " ")
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
		around := filepath.Dir(dir)
		dirBefore := stat(around)
		_ = victim.Process.Kill()
		_ = victim.Wait()
		if addr == "" || before != nil || dirBefore != nil {
			t.Fatalf("the victim's server at %q: %v, %v", addr, before, dirBefore)
		}
		for end := time.Now().Add(2 * time.Minute); ping() == nil; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("the server at %s outlived its parent", addr)
			}
		}
		for end := time.Now().Add(2 * time.Minute); !errors.Is(stat(around), fs.ErrNotExist); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s outlived the process that used it: %v", around, stat(around))
			}
		}
	})
}

func stat(path string) error {
	_, err := os.Stat(path)
	return err
}
