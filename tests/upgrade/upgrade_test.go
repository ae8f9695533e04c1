// Package upgrade rolls a fleet from the last release to this tree and back, on one server.
package upgrade

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/leaktest"
	"github.com/redlatch/redlatch/internal/testserver"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

const (
	top   = "../.."         // the folder of the root package, seen from here
	size  = 3               // of the fleet
	limit = 2 * time.Minute // for a turn of every worker of a process: who waits longer is forgotten
)

// Both fleets share everything while one replaces the other: nobody is inside with somebody else, and nobody waits for
// ever.
func TestFleetsOfTwoReleasesShareEverything(t *testing.T) {
	dir := t.TempDir()
	from := before(t)
	t.Logf("from %s", from)
	if err := roll(t, was(t, from, filepath.Join(dir, "tree"), nil), build(t, top, filepath.Join(dir, "this"))); err != nil {
		t.Error(err)
	}
}

// A fleet whose scripts let in whoever asks is noticed, or the test above could not fail.
func TestAFleetThatExcludesNobodyIsNoticed(t *testing.T) {
	dir := t.TempDir()
	broken := was(t, before(t), filepath.Join(dir, "tree"), func(tree string) {
		name := filepath.Join(tree, "internal", "lua", "lock.take.lua")
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		other := bytes.Replace(text, []byte("if #fields == 0 then"), []byte("if true then"), 1)
		if bytes.Equal(text, other) {
			t.Fatal("the script has no such line any more")
		}
		if err := os.WriteFile(name, other, 0o600); err != nil {
			t.Fatal(err)
		}
	})
	err := roll(t, broken, build(t, top, filepath.Join(dir, "this")))
	if err == nil || !regexp.MustCompile(`are inside|lost`).MatchString(err.Error()) {
		t.Errorf("a fleet that takes what others hold: %v", err)
	}
}

// before is the last release, or as long as there is none, the commit of UPGRADE_FROM, or the one that is checked out.
func before(t *testing.T) string {
	t.Helper()
	tags := strings.Fields(run(t, top, "git", "tag", "--list", "--merged=HEAD", "--sort=-version:refname", "v[0-9]*"))
	if len(tags) > 0 {
		return tags[0]
	}
	if from := os.Getenv("UPGRADE_FROM"); from != "" {
		return from
	}
	return "HEAD"
}

// was builds the peer of this tree with the library of another commit, which change may change.
func was(t *testing.T, commit, tree string, change func(tree string)) (program string) {
	t.Helper()
	if err := os.Mkdir(tree, 0o700); err != nil {
		t.Fatal(err)
	}
	run(t, top, "git", "archive", "--format=tar", "--output="+tree+".tar", commit)
	run(t, tree, "tar", "-xf", tree+".tar")
	peer := filepath.Join(tree, "tests", "upgrade", "peer")
	if err := errors.Join(os.RemoveAll(peer), os.CopyFS(peer, os.DirFS("peer"))); err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(tree)
	}
	return build(t, tree, tree+".peer")
}

func build(t *testing.T, tree, program string) string {
	t.Helper()
	run(t, filepath.Join(tree, "tests"), "go", "build", "-buildvcs=false", "-trimpath", "-o", program, "./upgrade/peer")
	return program
}

func run(t *testing.T, dir string, words ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), words[0], words[1:]...)
	cmd.Dir, cmd.Env = dir, append(cmd.Environ(), "GOWORK=off") // the tests replace our modules by those of their tree
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%q: %v: %s", words, err, complaints.String())
	}
	return string(out)
}

// roll replaces one process after the other, to and fro. A process begins before another one ends, as in a roll-out.
func roll(t *testing.T, older, newer string) (err error) {
	t.Helper()
	s := testserver.Start(t, testserver.Redis, testserver.Open...)
	var fleet []*member
	defer func() {
		for _, m := range fleet {
			err = errors.Join(err, m.end())
		}
	}()
	programs := slices.Concat(slices.Repeat([]string{older}, size), slices.Repeat([]string{newer}, size), slices.Repeat([]string{older}, size))
	for _, program := range programs {
		m, err := begin(program, s.Addr())
		if err != nil {
			return err
		}
		fleet = append(fleet, m)
		if err := m.ready(); err != nil {
			return err
		}
		if len(fleet) > size {
			first := fleet[0]
			fleet = fleet[1:]
			if err := first.end(); err != nil {
				return err
			}
		}
	}
	return nil
}

// A member is a process of the fleet.
type member struct {
	cmd    *exec.Cmd
	input  io.Closer
	output *bufio.Reader
	errors bytes.Buffer
}

func begin(program, addr string) (*member, error) {
	m := &member{cmd: exec.Command(program, addr)}
	m.cmd.Stderr = &m.errors
	input, err := m.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := m.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	m.input, m.output = input, bufio.NewReader(output)
	return m, m.cmd.Start()
}

// ready waits until each worker of the process has had a turn.
func (m *member) ready() error {
	stuck := time.AfterFunc(limit, func() { _ = m.cmd.Process.Kill() })
	defer stuck.Stop()
	if line, err := m.output.ReadString('\n'); line != "ready\n" {
		return fmt.Errorf("it has ended, or %v have passed, before each worker had a turn: %w", limit, err)
	}
	return nil
}

// end has the process let go of all, and come to its end.
func (m *member) end() error {
	stuck := time.AfterFunc(limit, func() { _ = m.cmd.Process.Kill() })
	defer stuck.Stop()
	_ = m.input.Close() // one that has failed has closed it
	_, _ = io.Copy(io.Discard, m.output)
	if err := m.cmd.Wait(); err != nil {
		return fmt.Errorf("%w: %s", err, m.errors.String())
	}
	return nil
}
