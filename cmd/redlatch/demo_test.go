//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// find returns what the groups of the pattern match in text, as numbers.
func find(t *testing.T, text, pattern string) []float64 {
	t.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("nothing like %q in:\n%s", pattern, text)
	}
	numbers := make([]float64, 0, len(m)-1)
	for _, s := range m[1:] {
		n, err := strconv.ParseFloat(s, 64)
		if err != nil {
			t.Fatal(err)
		}
		numbers = append(numbers, n)
	}
	return numbers
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	return lines[len(lines)-1]
}

// The whole story, without a terminal.
func TestDemo(t *testing.T) {
	long(t)
	t.Parallel()
	dir := t.TempDir()
	const watchdog = 6 // seconds: a busy machine must not make it lose more
	cmd := (&redis{}).command("demo", "--watchdog", fmt.Sprint(watchdog))
	cmd.Env = append(cmd.Env, "TMPDIR="+dir)
	res := finish(t, cmd)
	if res.code != 0 || res.err != "" {
		t.Errorf("%+v", res)
	}
	if strings.Contains(res.out, "\x1b") {
		t.Error("escape sequences without a terminal")
	}
	contains(t, res.out, "watchdog is 6s")

	n := find(t, lastLine(res.out), `^(\d+) acquisitions, (\d+) violations, (\d+) loss(?:es)?$`)
	if n[0] < 20 || n[1] != 0 || n[2] < 1 {
		t.Errorf("last line: %s", lastLine(res.out))
	}
	left := find(t, res.out, `kill -9 of worker \d \(pid \d+\), the holder; ([\d.]+) s of its lease left`)[0]
	back := find(t, res.out, `the lock is back: worker \d has it ([\d.]+) s after the kill`)[0]
	if left <= 0.5 || left > watchdog || back < left-0.05 {
		t.Errorf("the lease had %v s left, and the lock came back after %v s", left, back)
	}
	told := find(t, res.out, `told at ([\d.]+) s: worker \d's context ended \(ErrLost\), it left`)[0]
	given := find(t, res.out, `given away at ([\d.]+) s, \d+ ms later: worker \d has the lock`)[0]
	if told >= given {
		t.Errorf("told at %v s, and given away at %v s", told, given)
	}
	if rest, _ := os.ReadDir(dir); len(rest) > 0 {
		t.Errorf("left behind: %v", rest)
	}
}

// startDemo starts a demo, and waits until it has a file of records in its folder.
func startDemo(t *testing.T, args ...string) (j *job, dir, records string) {
	t.Helper()
	dir = t.TempDir()
	cmd := (&redis{}).command(append([]string{"demo", "--watchdog", "1m"}, args...)...)
	cmd.Env = append(cmd.Env, "TMPDIR="+dir)
	j = start(t, cmd)
	eventually(t, "records", func() bool {
		found, _ := filepath.Glob(filepath.Join(dir, "redlatch-demo-*", "records"))
		if len(found) == 1 {
			text, _ := os.ReadFile(found[0])
			records = found[0]
			return strings.Contains(string(text), "enter")
		}
		return false
	}, j.output)
	return j, dir, records
}

// The oracle believes the records and nothing else: a section that should not
// have been makes the demo fail.
func TestDemoViolation(t *testing.T) {
	t.Parallel()
	j, _, records := startDemo(t, "--for", "2s", "--workers", "2")
	f, err := os.OpenFile(records, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := fmt.Fprintf(f, "%d 1 9 enter\n", time.Now().UnixNano()); err != nil {
		t.Fatal(err)
	}
	j.ends(1)
	contains(t, j.output(), "VIOLATION: worker ", "worker 9 (pid 1)")
	if n := find(t, lastLine(j.output()), `^\d+ acquisitions?, (\d+) violations?, \d+ loss`); n[0] < 1 {
		t.Errorf("last line: %s", lastLine(j.output()))
	}
}

// It died of its reader's end, and left its folder behind; and a result that
// nobody could have was a success.
func TestADemoWhoseLinesCannotBeWrittenEndsAndLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := (&redis{}).command("demo", "--watchdog", "1m")
	cmd.Env = append(cmd.Env, "TMPDIR="+dir)
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	var errs strings.Builder
	cmd.Stdout, cmd.Stderr = writer, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	writer.Close()
	if _, err := reader.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	reader.Close()
	if code := exitCode(cmd.Wait()); code != exitSystem || !strings.Contains(errs.String(), "redlatch: writing the result: ") {
		t.Errorf("exit %d: %s", code, errs.String())
	}
	if rest, _ := os.ReadDir(dir); len(rest) > 0 {
		t.Errorf("left behind: %v", rest)
	}
}

// A signal ends it early, with a last line all the same.
func TestDemoInterrupted(t *testing.T) {
	t.Parallel()
	j, dir, _ := startDemo(t)
	j.signal(unix.SIGINT)
	j.ends(130)
	find(t, lastLine(j.output()), `^(\d+) acquisitions?, 0 violations, 0 losses$`)
	if rest, _ := os.ReadDir(dir); len(rest) > 0 {
		t.Errorf("left behind: %v", rest)
	}
}
