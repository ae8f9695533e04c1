package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const mostBytes = 16 << 20

// Of a program that calls methods by names that it makes up, the linker keeps all
// methods that there are: those of the client of Redis alone are 20,000. A
// template does that, whatever is in it, and the program was 27 MB instead of 15.
func TestTheLinkerMayDropWhatNobodyCalls(t *testing.T) {
	if testing.Short() {
		t.Skip("links the program")
	}
	file := filepath.Join(t.TempDir(), "redlatch")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags=-s -w -dumpdep", "-o", file, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	deps, err := build.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %.2000s", err, deps)
	}
	lines := strings.Split(string(deps), "\n")
	for _, line := range lines {
		if strings.Contains(line, "<ReflectMethod>") {
			t.Errorf("the linker keeps all methods, because of %s", line)
		}
	}
	if len(lines) < 1000 {
		t.Errorf("the linker told of %d dependencies: does this test still read them?", len(lines))
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%.1f MB", float64(info.Size())/(1<<20))
	if info.Size() > mostBytes {
		t.Errorf("the program has %d bytes, and may have %d", info.Size(), mostBytes)
	}
}
