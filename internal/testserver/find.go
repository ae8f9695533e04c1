package testserver

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
)

// Kind is a server program.
type Kind string

// The servers that redlatch is tested with.
const (
	Redis  Kind = "redis"
	Valkey Kind = "valkey"
)

// Kinds returns all kinds, for tests that run once with each.
func Kinds() []Kind { return []Kind{Redis, Valkey} }

// module matches the go.mod at the top of this repository, and not those of the
// modules below it.
var module = regexp.MustCompile(`(?m)^module\s+github\.com/redlatch/redlatch\s*$`)

// find returns the path of the program that runs a server of kind k. The
// directory that REDLATCH_SERVERS names is the only place when it is set;
// otherwise .servers/bin at the top of the repository, and then PATH.
func find(k Kind) (string, error) {
	name := string(k) + "-server"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
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
		return "", fmt.Errorf("no %s in .servers/bin or PATH: run `make servers`, or install the Debian package %s-server, "+
			"or set REDLATCH_SERVERS to a directory with the program", name, k)
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
