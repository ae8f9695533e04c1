// Package upgrade rolls a fleet from the last release to this tree and back, on
// one server.
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
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/leaktest"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/tests/internal/folder"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

const (
	top   = "../.."         // the folder of the root package, seen from here
	size  = 3               // of the fleet
	limit = 2 * time.Minute // for a process until each of its workers has had a turn, and again until it has ended
)

// Both fleets share everything while one replaces the other: nobody is inside with
// somebody else, and nobody waits for ever.
func TestFleetsOfTwoReleasesShareEverything(t *testing.T) {
	dir := t.TempDir()
	from := before(t)
	fmt.Printf("CHOSEN: from %s\n", in(t, top).Line("git", "log", "-1", "--format=%h, %s", from)) // make shows such a line
	if err := roll(t, was(t, from, filepath.Join(dir, "tree"), nil), build(t, top, filepath.Join(dir, "this"))); err != nil {
		t.Error(err)
	}
}

// A fleet whose scripts let in whoever asks is noticed, or the test above could
// not fail.
func TestAFleetThatExcludesNobodyIsNoticed(t *testing.T) {
	dir := t.TempDir()
	broken := was(t, before(t), filepath.Join(dir, "tree"), func(tree string) {
		name := filepath.Join(tree, "internal", "lua", "lock.take.lua")
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		// It is the older tree's script, and so the line may be an older one.
		other := regexp.MustCompile(`(?m)^if (#fields|size) == 0 then$`).ReplaceAll(text, []byte("if true then"))
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

// before is the commit of UPGRADE_FROM, or else the last release before the commit
// that is checked out. As long as there is none, it is a commit of some weeks ago:
// with itself a tree always gets along.
func before(t *testing.T) string {
	t.Helper()
	if from := os.Getenv("UPGRADE_FROM"); from != "" {
		return from
	}
	tags := in(t, top).Line("git", "-c", "versionsort.suffix=-", // v1.0.0-rc.1 comes before v1.0.0
		"tag", "--list", "--merged=HEAD", "--no-contains=HEAD", "--sort=-version:refname", "v[0-9]*")
	if last, _, _ := strings.Cut(tags, "\n"); last != "" {
		return last
	}
	commit := in(t, top).Line("git", "rev-list", "--first-parent", "--max-count=1", "--skip=60", "HEAD")
	if commit == "" {
		t.Fatal("there is no release before this commit, nor are there 60 commits: UPGRADE_FROM=COMMIT says from where")
	}
	return commit
}

// was builds the peer of this tree with the library of another commit, which
// change may change. If the API was another one there, it builds the peer that the
// commit has itself.
func was(t *testing.T, commit, tree string, change func(tree string)) (program string) {
	t.Helper()
	if err := os.Mkdir(tree, 0o700); err != nil {
		t.Fatal(err)
	}
	in(t, top).Run("git", "archive", "--format=tar", "--output="+tree+".tar", commit)
	in(t, tree).Run("tar", "-xf", tree+".tar")
	peer, own := filepath.Join(tree, "tests", "upgrade", "peer"), tree+".own"
	hasOne := os.Rename(peer, own) == nil
	if err := os.CopyFS(peer, os.DirFS("peer")); err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(tree)
	}
	program = tree + ".peer"
	err := builds(t, tree, program)
	if err != nil && hasOne {
		t.Logf("the older tree's own peer is used, because this tree's does not build there: %v", err)
		if err := errors.Join(os.RemoveAll(peer), os.Rename(own, peer)); err != nil {
			t.Fatal(err)
		}
		err = builds(t, tree, program)
	}
	if err != nil {
		t.Fatal(err)
	}
	return program
}

func build(t *testing.T, tree, program string) string {
	t.Helper()
	if err := builds(t, tree, program); err != nil {
		t.Fatal(err)
	}
	return program
}

func builds(t *testing.T, tree, program string) error {
	t.Helper()
	_, err := in(t, filepath.Join(tree, "tests")).Try("go", "build", "-buildvcs=false", "-trimpath", "-o", program, "./upgrade/peer")
	return err
}

// in is a folder in which the tests replace our modules by those of their tree.
func in(t *testing.T, dir string) folder.Folder {
	t.Helper()
	return folder.At(t, dir, "GOWORK=off")
}

// roll replaces one process after the other, to and fro. A process begins before
// another one ends, as in a roll-out.
func roll(t *testing.T, older, newer string) (err error) {
	t.Helper()
	s := testserver.Start(t, testserver.Redis, testserver.Open...)
	var fleet []*member
	defer func() {
		for _, m := range fleet {
			if err == nil {
				err = m.end()
			} else {
				err = errors.Join(err, m.kill()) // what the others wait for may never come
			}
		}
	}()
	programs := slices.Concat(slices.Repeat([]string{older}, size), slices.Repeat([]string{newer}, size), slices.Repeat([]string{older}, size))
	for _, program := range programs {
		m, err := begin(program, s.Addr())
		if err != nil {
			return err
		}
		if err := m.ready(); err != nil {
			return err
		}
		fleet = append(fleet, m)
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
	late   atomic.Bool // it has taken longer than limit
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

// hurry ends the process after limit, and has it print first where its goroutines
// are. What it returns calls that off.
func (m *member) hurry() (stop func() bool) {
	return time.AfterFunc(limit, func() {
		m.late.Store(true)
		_ = m.cmd.Process.Signal(syscall.SIGQUIT)
	}).Stop
}

// ready waits until each worker of the process has had a turn. If it fails, the
// process has ended.
func (m *member) ready() error {
	defer m.hurry()()
	if line, _ := m.output.ReadString('\n'); line == "ready\n" {
		return nil
	}
	if err := m.ended(); err != nil {
		return err
	}
	return errors.New("a process has ended by itself")
}

// end has the process let go of all, and come to its end.
func (m *member) end() error {
	defer m.hurry()()
	_ = m.input.Close() // one that has failed has closed it
	return m.ended()
}

// kill ends the process, and returns what it had failed with before, if it had.
func (m *member) kill() error {
	_ = m.cmd.Process.Kill()
	if err := m.ended(); m.cmd.ProcessState.Exited() {
		return err
	}
	return nil
}

// ended waits for the end of the process, and returns what was wrong with it.
func (m *member) ended() error {
	_, _ = io.Copy(io.Discard, m.output)
	err := m.cmd.Wait()
	if m.late.Load() {
		return fmt.Errorf("after %v somebody still waits: %s", limit, m.errors.String())
	}
	if err != nil {
		return fmt.Errorf("%w: %s", err, m.errors.String())
	}
	return nil
}
