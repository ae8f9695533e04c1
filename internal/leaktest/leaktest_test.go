package leaktest

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestMain(m *testing.M) { Main(m) }

// waitFor is what a goroutine does that nobody ends.
func waitFor(end <-chan struct{}) { <-end }

func TestFindsWhatIsLeft(t *testing.T) {
	end := make(chan struct{})
	go waitFor(end) // not of those who ask later
	before := running()
	started := make(chan struct{})
	go func() {
		close(started)
		waitFor(end)
	}()
	<-started

	left := leftSince(before, 0, nil)
	if strings.Count(left, "goroutine ") != 1+strings.Count(left, " in goroutine ") || !strings.Contains(left, "leaktest.waitFor") {
		t.Errorf("want the stack of one goroutine, got\n%s", left)
	}
	const name = "github.com/redlatch/redlatch/internal/leaktest.waitFor"
	if left := leftSince(before, 0, []string{name}); left != "" {
		t.Errorf("not ignored:\n%s", left)
	}
	if left := leftSince(before, 0, []string{strings.TrimSuffix(name, "For")}); left == "" {
		t.Error("the name of another function was taken for this one's")
	}
	close(end)
	if left := leftSince(before, limit, nil); left != "" {
		t.Errorf("it has ended:\n%s", left)
	}
}

// A recorder is a test that may fail.
type recorder struct {
	testing.TB

	cleanup func()
	failed  bool
	text    string
}

func (r *recorder) Helper()           {}
func (r *recorder) Cleanup(f func())  { r.cleanup = f }
func (r *recorder) Failed() bool      { return r.failed }
func (r *recorder) Error(args ...any) { r.failed, r.text = true, args[0].(string) }

func TestCheckFailsForALeakAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // nothing has to wait for the limit
		end := make(chan struct{})
		late, leak := &recorder{}, &recorder{}
		Check(late)
		go waitFor(end)
		time.AfterFunc(limit/2, func() { close(end) })
		late.cleanup()
		if late.failed {
			t.Errorf("it has ended in time: %s", late.text)
		}

		never := make(chan struct{})
		defer close(never)
		Check(leak)
		go waitFor(never)
		leak.cleanup()
		if !leak.failed || !strings.Contains(leak.text, "leaktest.waitFor") {
			t.Errorf("failed %v: %q", leak.failed, leak.text)
		}
	})
}
