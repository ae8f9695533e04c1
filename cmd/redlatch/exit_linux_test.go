package main

import (
	"os"
	"strings"
	"testing"
	"time"
)

// A result that nobody can have is no success.
func TestResultThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	for _, args := range [][]string{
		{"ls"},
		{"show", "x"},
		{"release", "--force", "x"},
		{"version"},
		{"--help"},
		{"run", "x", "--help"},
		{"completion", "bash"},
		{"completion", "zsh"},
		{"demo", "--for", "1s"},
	} {
		formats := []string{"", "json"}
		if args[0] == "completion" || args[0] == "demo" || args[len(args)-1] == "--help" {
			formats = formats[:1]
		}
		for _, format := range formats {
			r.hold("x", time.Hour)
			full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			cmd := r.command(args...)
			if format != "" {
				cmd.Args = append(cmd.Args, "-o", format)
			}
			var errs strings.Builder
			cmd.Stdout, cmd.Stderr = full, &errs
			code := exitCode(cmd.Run())
			full.Close()
			if code != 71 || !strings.Contains(errs.String(), "redlatch: writing the result: ") {
				t.Errorf("%q: exit %d: %s", cmd.Args[1:], code, errs.String())
			}
		}
	}
}
