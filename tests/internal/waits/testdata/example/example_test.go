package example

import (
	"context"
	"os/exec"
	"testing"
	"testing/synctest"
	"time"
)

func inFakeTime(t *testing.T, f func()) {
	synctest.Test(t, func(*testing.T) { f() })
}

func within(d time.Duration, ok func() bool) bool {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if ok() {
			return true
		}
	}
	return false
}

func eventually(t *testing.T, ok func() bool) {
	if !within(time.Minute, ok) {
		t.Error("it takes too long")
	}
}

func wait(ctx context.Context) { <-ctx.Done() }

func TestInAHelper(t *testing.T) {
	eventually(t, func() bool { return true })
}

func TestByItself(t *testing.T) {
	time.Sleep(time.Microsecond)
	within(2*time.Second, func() bool { return true })
}

func TestAContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	wait(ctx)
}

func TestAProgram(t *testing.T) {
	if err := exec.Command("true").Run(); err != nil {
		t.Error(err)
	}
}

var programs = map[string]func() error{"true": exec.Command("true").Run}

func TestAProgramInATable(t *testing.T) {
	for _, run := range programs {
		if err := run(); err != nil {
			t.Error(err)
		}
	}
}

func TestAnyLength(t *testing.T) {
	time.Sleep(time.Duration(len(t.Name())))
}

func TestInFakeTime(t *testing.T) {
	inFakeTime(t, func() { time.Sleep(time.Hour) })
}

func TestATableInFakeTime(t *testing.T) {
	for name, story := range map[string]func(){
		"a": func() { time.Sleep(time.Hour) },
	} {
		t.Run(name, func(t *testing.T) { inFakeTime(t, func() { story() }) })
	}
}

func TestNothing(*testing.T) {}
