// Package folder runs commands in a folder, for tests of what other programs make
// of this project. It promises that a failure shows all that the command has
// printed.
package folder

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A Folder is a place where commands are run.
type Folder struct {
	*testing.T

	Dir string
	Env []string // beside that of this process
}

// At returns the folder at a path, for commands with so much more in their
// environment.
func At(t *testing.T, dir string, env ...string) Folder {
	t.Helper()
	return Folder{t, dir, env}
}

// Try runs a command, and returns what it printed.
func (f Folder) Try(name string, args ...string) (string, error) {
	f.Helper()
	cmd := exec.CommandContext(f.Context(), name, args...)
	cmd.Dir, cmd.Env = f.Dir, append(cmd.Environ(), f.Env...)
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	err := cmd.Run()
	if err != nil {
		err = fmt.Errorf("%s %s: %w\n%s%s", name, strings.Join(args, " "), err, out.String(), complaints.String())
	}
	return out.String(), err
}

// Run is Try of what has to succeed.
func (f Folder) Run(name string, args ...string) string {
	f.Helper()
	out, err := f.Try(name, args...)
	if err != nil {
		f.Fatal(err)
	}
	return out
}

// Line is Run of what prints one line, or none; it returns that without its end.
func (f Folder) Line(name string, args ...string) string {
	f.Helper()
	return strings.TrimSuffix(f.Run(name, args...), "\n")
}

// Write writes a file.
func (f Folder) Write(name, text string) {
	f.Helper()
	if err := os.WriteFile(filepath.Join(f.Dir, name), []byte(text), 0o600); err != nil {
		f.Fatal(err)
	}
}

// Read returns the text of a file.
func (f Folder) Read(name string) string {
	f.Helper()
	text, err := os.ReadFile(filepath.Join(f.Dir, name))
	if err != nil {
		f.Fatal(err)
	}
	return string(text)
}
