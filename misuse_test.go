package redlatch_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// misuses are calls that do not compile, and what the compiler has to say of them.
// Without a message a call compiles.
var misuses = []struct{ call, says string }{
	{`c.Lock("x", redlatch.Lease(d), redlatch.Fenced(), redlatch.NonReentrant(), redlatch.MinHold(d))`, ""},
	{`c.StripedLock("x", 3, redlatch.MinHold(d), redlatch.Lease(d))`, ""},
	{`c.FairLock("x", redlatch.Watchdog(d), redlatch.MaxHold(d), redlatch.Fenced(), redlatch.NonReentrant())`, ""},
	{`c.ReadWriteLock("x", redlatch.Lease(d), redlatch.Fenced(), redlatch.NonReentrant())`, ""},
	{`semaphore.NewExpirable(c, "x", 0, redlatch.Lease(d))`, ""},
	{`redlatch.RedLock(c.Lock("x", redlatch.Lease(d)), redlatch.MultiLock(c.StripedLock("y", 2).For("a", "b")))`, ""},

	{`c.FairLock("x", redlatch.MinHold(d))`, "cannot use redlatch.MinHold(d) (value of interface type redlatch.PlainOption) as redlatch.LockOption value in argument to c.FairLock: redlatch.PlainOption does not implement redlatch.LockOption (missing method forEveryLock)"},
	{`c.ReadWriteLock("x", redlatch.MinHold(d))`, "argument to c.ReadWriteLock: redlatch.PlainOption does not implement redlatch.LockOption (missing method forEveryLock)"},
	{`redisson.SpinLock(c, "x", nil, redlatch.MinHold(d))`, ""},
	{`redisson.GroupLock(c, "x", nil, redlatch.Lease(d), redlatch.Fenced())`, ""},
	{`redisson.GroupLock(c, "x", nil, redlatch.MinHold(d))`, "argument to redisson.GroupLock: redlatch.PlainOption does not implement redlatch.LockOption (missing method forEveryLock)"},
	{`semaphore.NewExpirable(c, "x", 0, redlatch.MinHold(d))`, "redlatch.PlainOption does not implement redlatch.HoldOption (missing method forEveryHold)"},
	{`semaphore.NewExpirable(c, "x", 0, redlatch.Fenced())`, "redlatch.LockOption does not implement redlatch.HoldOption (missing method forEveryHold)"},
	{`semaphore.NewExpirable(c, "x", 0, redlatch.NonReentrant())`, "redlatch.LockOption does not implement redlatch.HoldOption (missing method forEveryHold)"},
	{`c.Lock("x", d)`, "Duration does not implement redlatch.PlainOption (missing method forPlainLock)"},
	{`c.Lock("x", redlatch.Lease)`, "redlatch.HoldOption does not implement redlatch.PlainOption (missing method forPlainLock)"},
	{`c.Lock("x").Acquire(ctx, redlatch.Lease(d))`, "too many arguments in call to c.Lock(\"x\").Acquire"},
	{`c.Lock("x").TryAcquire(ctx, 0, redlatch.Fenced())`, "too many arguments in call to c.Lock(\"x\").TryAcquire"},
	{`c.Lock("x").TryAcquire(ctx)`, "not enough arguments in call to c.Lock(\"x\").TryAcquire"},
	{`c.Lock("x").Do(ctx, f, redlatch.Lease(d))`, "too many arguments in call to c.Lock(\"x\").Do"},
	{`c.Lock("x").TryDo(ctx, 0, f, redlatch.MinHold(d))`, "too many arguments in call to c.Lock(\"x\").TryDo"},
	{`c.Lock("x").Do(ctx, d, f)`, "too many arguments in call to c.Lock(\"x\").Do"},
	{`c.Lock("x").TryDo(ctx, f, d)`, "cannot use f (variable of type func(context.Context) error) as \"time\".Duration value in argument to c.Lock(\"x\").TryDo"},
	{`redlatch.MultiLock(c.Lock("x")).Acquire(ctx, redlatch.Lease(d))`, "too many arguments in call to redlatch.MultiLock"},
	{`redlatch.MultiLock(c.Lock("x"), redlatch.Lease(d))`, "cannot use redlatch.Lease(d) (value of interface type redlatch.HoldOption) as *redlatch.Lock value in argument to redlatch.MultiLock"},
	{`redlatch.MultiLock(c.ReadWriteLock("x"))`, "as *redlatch.Lock value in argument to redlatch.MultiLock"},
	{`semaphore.NewExpirable(c, "x", 0).Acquire(ctx)`, "not enough arguments in call to semaphore.NewExpirable(c, \"x\", 0).Acquire"},
	{`semaphore.NewExpirable(c, "x", 0).Acquire(ctx, 1, redlatch.Lease(d))`, "too many arguments in call to semaphore.NewExpirable(c, \"x\", 0).Acquire"},
	{`semaphore.New(c, "x", 1).Acquire(ctx, 1, redlatch.Lease(d))`, "too many arguments in call to semaphore.New(c, \"x\", 1).Acquire"},
}

// An option that is wrong for a lock was told when the program ran, if that line
// ever did.
func TestTheCompilerRefusesAnOptionWhereItMeansNothing(t *testing.T) {
	program := strings.Builder{}
	program.WriteString("package main\nimport (\"context\"; \"time\"; \"github.com/redlatch/redlatch\"; \"github.com/redlatch/redlatch/redisson\"; \"github.com/redlatch/redlatch/semaphore\")\nfunc main() {}\n" +
		"func _(c *redlatch.Client, ctx context.Context, d time.Duration, f func(context.Context) error) {\n")
	first := strings.Count(program.String(), "\n") + 1
	for _, m := range misuses {
		fmt.Fprintln(&program, m.call)
	}
	program.WriteString("}\n")
	file := filepath.Join(t.TempDir(), "misuse.go")
	if err := os.WriteFile(file, []byte(program.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("go", "build", "-gcflags=-e", "-o", os.DevNull, file).CombinedOutput()
	if err == nil {
		t.Fatal("it compiles")
	}
	said := make([]string, len(misuses))
	for _, m := range regexp.MustCompile(`misuse\.go:(\d+):\d+: (.*)`).FindAllStringSubmatch(string(out), -1) {
		if line, _ := strconv.Atoi(m[1]); line >= first && line < first+len(said) {
			said[line-first] += m[2]
		}
	}
	for i, m := range misuses {
		if !strings.Contains(said[i], m.says) || (m.says == "") != (said[i] == "") {
			t.Errorf("%s\n  the compiler says %q\n  and it should say %q", m.call, said[i], m.says)
		}
	}
	if t.Failed() {
		t.Logf("%s", out)
	}
}
