// Package release makes two releases of the working tree for a remote repository
// in a folder, and uses each as its users do.
package release

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/internal/leaktest"
	"github.com/redlatch/redlatch/tests/internal/folder"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

const (
	top    = "../.." // the folder of the root package, seen from here
	ours   = "github.com/redlatch/redlatch"
	first  = "v0.99.1" // of the releases that only these tests see
	second = "v0.99.2"
)

// A repository has the working tree as its only commit, and a remote repository.
func repository(t *testing.T) (repo folder.Folder, remote string) {
	t.Helper()
	// What make or git has told the process of this test is not for those of others.
	for _, name := range []string{"MAKEFLAGS", "MAKELEVEL", "MFLAGS", "GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE"} {
		t.Setenv(name, "")
		_ = os.Unsetenv(name)
	}
	repo = folder.At(t, t.TempDir(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
	for name := range strings.SplitSeq(folder.At(t, top).Run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"), "\x00") {
		copyFile(t, filepath.Join(top, name), filepath.Join(repo.Dir, name))
	}
	remote = filepath.Join(t.TempDir(), "redlatch.git")
	repo.Run("git", "init", "--quiet", "--initial-branch=main")
	repo.Run("git", "config", "user.name", "tester")
	repo.Run("git", "config", "user.email", "tester@example.com")
	repo.Run("git", "add", "--all")
	repo.Run("git", "commit", "--quiet", "--message=the working tree")
	repo.Run("git", "init", "--quiet", "--bare", "--initial-branch=main", remote)
	repo.Run("git", "remote", "add", "origin", remote)
	repo.Run("git", "push", "--quiet", "origin", "main")
	return repo, remote
}

// copyFile copies what is a file, and not, say, deleted but not committed yet.
func copyFile(t *testing.T, from, to string) {
	t.Helper()
	info, err := os.Lstat(from)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return
	}
	text, err := os.ReadFile(from)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o700)
	}
	if err == nil {
		err = os.WriteFile(to, text, info.Mode().Perm())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// users returns the environment of somebody who has nothing of ours and finds it
// at the remote. What others publish is taken from this machine's module cache, as
// far as it is there.
func users(t *testing.T, remote string) []string {
	t.Helper()
	here := folder.At(t, top)
	goenv := func(name string) string { return strings.TrimSpace(here.Run("go", "env", name)) }
	return []string{
		"GOWORK=off", "GO111MODULE=on", "GOSUMDB=off", "GONOPROXY=" + ours,
		"GOMODCACHE=" + t.TempDir(),
		"GOPROXY=file://" + filepath.ToSlash(goenv("GOMODCACHE")) + "/cache/download," + goenv("GOPROXY"),
		"GOFLAGS=" + goenv("GOFLAGS") + " -modcacherw -trimpath", // the build cache knows no folders then
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url.file://" + filepath.ToSlash(remote) + ".insteadOf", "GIT_CONFIG_VALUE_0=https://" + ours,
	}
}

func TestRelease(t *testing.T) {
	repo, remote := repository(t)
	env := users(t, remote)

	// Before the first release go get fails, and the quickstart says how to do
	// without.
	if strings.Contains(repo.Read("redlatchgoredis/go.mod"), ours+" v0.0.0\n") {
		t.Run("beside a clone", func(t *testing.T) { besideAClone(t, env) })
	}

	release(repo, first)
	t.Run("first", func(t *testing.T) { works(t, env, first, first) })
	t.Run("quickstart", func(t *testing.T) { begins(t, env) })

	// As soon as two modules change together, main need not be installable. It is
	// built in a checkout all the same.
	repo.Write("new.go", "package redlatch\n\n// New2 is new.\nfunc New2() int { return 2 }\n")
	repo.Write("redlatchgoredis/new.go", "package redlatchgoredis\n\nimport \"github.com/redlatch/redlatch\"\n\nvar _ = redlatch.New2()\n")
	repo.Run("git", "add", "--all")
	repo.Run("git", "commit", "--quiet", "--message=a change of two modules")
	repo.Run("git", "push", "--quiet", "origin", "main")
	checkout := repo
	checkout.Env = append(slices.Clip(repo.Env), "GOWORK=")
	checkout.Run("go", "build", "./...", "./redlatchgoredis")
	checkout.Run("make", "--no-print-directory", "cross", "SYSTEMS=linux", "PUBLISHED=redlatchgoredis")
	if _, err := imported(t, env, "redlatchgoredis", "main"); err == nil || !strings.Contains(err.Error(), "undefined: redlatch.New2") {
		t.Errorf("a change of two modules, which is not released yet, is installed: %v", err)
	}

	t.Run("main beside a clone", func(t *testing.T) { besideAClone(t, env) })

	release(repo, second)
	t.Run("second at main", func(t *testing.T) { works(t, env, "main", second) }) // that is the second release
	t.Run("README", func(t *testing.T) { runs(t, env) })
	checkout.Run("make", "--no-print-directory", "tidied")
	t.Run("refused", func(t *testing.T) {
		repo.T = t
		refuses(repo)
	})
}

// release makes a release, and publishes it as the script says.
func release(repo folder.Folder, version string) {
	repo.Helper()
	said := strings.Split(strings.TrimSpace(repo.Run("make", "--no-print-directory", "release", "VERSION="+version)), "\n")
	if got := repo.Run("git", "status", "--porcelain") + repo.Run("git", "log", "--format=%s", "origin/main..", "--"); got != "all: release "+version+"\n" {
		repo.Errorf("the release has left this in the working tree and its branch:\n%s", got)
	}
	if got, want := repo.Run("git", "rev-parse", "main"), repo.Run("git", "rev-parse", version+"^{commit}"); got != want {
		repo.Errorf("main is %s, and the release %s", got, want)
	}
	var pushes [][]string
	for _, line := range said {
		if strings.HasPrefix(line, "git push ") {
			pushes = append(pushes, strings.Fields(line))
		}
	}
	// GitHub builds a release if it gets three tags at most at a time.
	if len(pushes) != 2 || len(pushes[0]) > 8 || !slices.Contains(pushes[0], version) {
		repo.Fatalf("release.sh does not say how to push the root module's tag, and then the others, but\n%s", strings.Join(said, "\n"))
	}
	for _, push := range pushes {
		repo.Run(push[0], push[1:]...)
	}
	if got, want := repo.Run("git", "ls-remote", "--refs", "origin"), repo.Run("git", "show-ref", "--heads", "--tags"); strings.Count(got, "\n") != strings.Count(want, "\n") {
		repo.Errorf("the remote has\n%swant\n%s", got, want)
	}
	if got := strings.Fields(repo.Run("git", "tag", "--points-at=main")); len(got) != len(programs)+1 {
		repo.Errorf("%q are released, and there are programs for %d modules and the command", got, len(programs))
	}
}

// works has users install all there is of a release, which they ask for by a
// query.
func works(t *testing.T, env []string, query, version string) {
	t.Helper()
	t.Run("command", func(t *testing.T) { installs(t, env, query, version) })
	for dir := range programs {
		t.Run("module "+dir, func(t *testing.T) { imports(t, env, dir, query, version) })
	}
}

// installs has a user without a checkout install the command and run it.
func installs(t *testing.T, env []string, query, version string) {
	t.Helper()
	user := folder.At(t, t.TempDir(), env...)
	user.Env = append(slices.Clip(env), "GOBIN="+user.Dir)
	user.Run("go", "install", ours+"/cmd/redlatch@"+query)
	command := filepath.Join(user.Dir, "redlatch")
	if got := user.Run(command, "version"); !strings.Contains(got, version) {
		t.Errorf("redlatch version says %q", got)
	}
	if got := user.Run(command, "--help"); !strings.Contains(got, "demo") {
		t.Errorf("redlatch --help says %q", got)
	}
	user.Run(command, "demo", "--plain", "--for", "2s")
}

// runs has a user build the README's program in an empty module, with what README
// says to get.
func runs(t *testing.T, env []string) {
	t.Helper()
	text := folder.At(t, top).Read("README.md")
	get := regexp.MustCompile(`(?m)^go get (\S+)$`).FindStringSubmatch(text)
	program := regexp.MustCompile("(?s)```go\n(package main\n.*?)```").FindStringSubmatch(text)
	if get == nil || program == nil {
		t.Fatal("README has no go get, or no program")
	}
	user := folder.At(t, t.TempDir(), env...)
	user.Run("go", "mod", "init", "example.com/user")
	user.Write("main.go", program[1])
	user.Run("go", "get", get[1]) // the newest release
	user.Run("go", "get", ".")    // what else the program imports
	user.Run("go", "build", "-o", os.DevNull, ".")
	if got := user.Run("go", "list", "-m", ours); !strings.Contains(got, second) {
		t.Errorf("the newest version is %s, want %s", got, second)
	}
}

// programs are those of users of a module each: tests, because some of the modules
// are for tests.
var programs = map[string]struct {
	library string // of others; only what it requires itself may come along
	body    string
	imports string
}{
	"": {"", `
	if _, err := redlatch.New(nil, redlatch.Config{}); err == nil {
		t.Fatal()
	}`, `"github.com/redlatch/redlatch"`},
	"redlatchgoredis": {"github.com/redis/go-redis/v9", `
	rdb := redis.NewClient(&redis.Options{Addr: "localhost:1"})
	defer rdb.Close()
	client, err := redlatch.New(redlatchgoredis.Use(rdb), redlatch.Config{})
	if err != nil {
		t.Fatal(err)
	}
	client.Close()`, `"github.com/redis/go-redis/v9"; "github.com/redlatch/redlatch"; "github.com/redlatch/redlatch/redlatchgoredis"`},
	"redlatchrueidis": {"github.com/redis/rueidis", `
	if _, err := redlatchrueidis.New(rueidis.ClientOption{}); err == nil {
		t.Fatal()
	}`, `"github.com/redis/rueidis"; "github.com/redlatch/redlatch/redlatchrueidis"`},
	"redlatchvalkey": {"github.com/valkey-io/valkey-go", `
	if _, err := redlatchvalkey.New(valkey.ClientOption{}); err == nil {
		t.Fatal()
	}`, `"github.com/redlatch/redlatch/redlatchvalkey"; "github.com/valkey-io/valkey-go"`},
	"redissonyaml": {"", `
	if _, err := redissonyaml.Parse([]byte("singleServerConfig: {address: 'redis://localhost:6379'}"), nil); err != nil {
		t.Fatal(err)
	}`, `"github.com/redlatch/redlatch/redissonyaml"`},
	"redlatchtest": {"", `
	hold, err := redlatchtest.NewClient(t, redlatch.Config{}).Lock("job").Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	redlatchtest.Lose(hold)`, `"github.com/redlatch/redlatch"; "github.com/redlatch/redlatch/redlatchtest"`},
	"redlatchprom": {"", `
	if err := prometheus.NewRegistry().Register(redlatchprom.New(redlatchprom.Options{})); err != nil {
		t.Fatal(err)
	}`, `"github.com/prometheus/client_golang/prometheus"; "github.com/redlatch/redlatch/redlatchprom"`},
	"redlatchotel": {"go.opentelemetry.io/otel", `
	if _, err := redlatchotel.New(redlatchotel.Options{}); err != nil {
		t.Fatal(err)
	}`, `"github.com/redlatch/redlatch/redlatchotel"`},
	"redlatchgocron": {"github.com/go-co-op/gocron/v2", `
	if _, err := gocron.NewScheduler(gocron.WithDistributedLocker(redlatchgocron.NewLocker(nil, redlatchgocron.Options{}))); err != nil {
		t.Fatal(err)
	}`, `"github.com/go-co-op/gocron/v2"; "github.com/redlatch/redlatch/redlatchgocron"`},
	"drivertest": {"github.com/alicebob/miniredis/v2", `
	_ = drivertest.Config{New: nil}
	_ = drivertest.Run`, `"github.com/redlatch/redlatch/drivertest"`},
}

// imported has a user get a module and test a program with it.
func imported(t *testing.T, env []string, dir, query string) (user folder.Folder, err error) {
	t.Helper()
	program := programs[dir]
	user = folder.At(t, t.TempDir(), env...)
	user.Run("go", "mod", "init", "example.com/user")
	user.Write("user_test.go", "package user\n\nimport (\n\"testing\"; "+program.imports+"\n)\n\nfunc Test(t *testing.T) {"+program.body+"\n}\n")
	if _, err = user.Try("go", "get", strings.TrimSuffix(ours+"/"+dir, "/")+"@"+query); err == nil {
		_, err = user.Try("go", "test", "-mod=mod", "./...")
	}
	return user, err
}

// imports has a user get a module, and nothing that it does not need.
func imports(t *testing.T, env []string, dir, query, version string) {
	t.Helper()
	user, err := imported(t, env, dir, query)
	if err != nil {
		t.Fatal(err)
	}
	module, program := strings.TrimSuffix(ours+"/"+dir, "/"), programs[dir]
	required := user.Run("go", "list", "-m", "all")
	for line := range strings.Lines(required) {
		if path, v, _ := strings.Cut(strings.TrimSpace(line), " "); (path == ours || strings.HasPrefix(path, ours+"/")) && v != version {
			t.Errorf("with %s comes %s %s", module, path, v)
		}
	}
	if dir != "" && program.library == "" {
		return // it brings several
	}
	want := []string{"example.com/user", ours}
	if dir != "" {
		// What the library of others brings, at the version that our module requires.
		at := user.Run("go", "list", "-m", "-f", "{{.Path}}@{{.Version}}", program.library)
		other := folder.At(t, t.TempDir(), env...)
		other.Run("go", "mod", "init", "example.com/user")
		other.Run("go", "get", strings.TrimSpace(at))
		want = append(paths(other.Run("go", "list", "-m", "all")), ours, module)
	}
	if got := paths(required); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
		t.Errorf("with %s come\n%q, want\n%q", module, got, want)
	}
}

// paths returns the modules of go list -m all, without their versions, in order.
func paths(list string) (all []string) {
	for line := range strings.Lines(list) {
		path, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		all = append(all, path)
	}
	slices.Sort(all)
	return all
}

// refuses has someone release what must not be.
func refuses(repo folder.Folder) {
	repo.Helper()
	want := func(pattern, name string, args ...string) {
		repo.Helper()
		before := repo.Run("git", "show-ref")
		if _, err := repo.Try(name, args...); err == nil || !regexp.MustCompile(pattern).MatchString(err.Error()) {
			repo.Errorf("%s %q: %v; want a refusal: %s", name, args, err, pattern)
		}
		if after := repo.Run("git", "show-ref"); after != before {
			repo.Errorf("%s %q was refused, and left\n%swhere there was\n%s", name, args, after, before)
		}
	}
	commit := func(message string) {
		repo.Helper()
		repo.Run("git", "commit", "--quiet", "--all", "--message="+message)
		repo.Run("git", "push", "--quiet", "origin", "main")
	}
	undo := func() {
		repo.Helper()
		repo.Run("git", "reset", "--quiet", "--hard", "HEAD^")
		repo.Run("git", "push", "--quiet", "--force", "origin", "main")
	}
	repo.Run("scripts/releasable.sh")
	want("there is a tag "+second, "make", "release", "VERSION="+second)
	want("usage", "make", "release")
	repo.Run("git", "switch", "--quiet", "--detach")
	want("no branch", "make", "release", "VERSION=v0.99.3")
	repo.Run("git", "switch", "--quiet", "main")

	// A tag by hand, on a commit that requires another release.
	repo.Run("git", "tag", "redlatchgoredis/v0.99.3")
	want(`redlatchgoredis/v0.99.3 must not be published:\n  it requires `+ours+` `+second, "scripts/releasable.sh")
	repo.Run("git", "tag", "--delete", "redlatchgoredis/v0.99.3")

	// A commit that the remote has not, and so the remote could have another one.
	repo.Run("git", "commit", "--quiet", "--allow-empty", "--message=not pushed")
	want("origin's main is not HEAD", "make", "release", "VERSION=v0.99.3")
	repo.Run("git", "reset", "--quiet", "--hard", "HEAD^")

	// A patch that takes away what users have compiled.
	repo.Run("git", "rm", "--quiet", "new.go", "redlatchgoredis/new.go")
	commit("an API that is gone")
	want(`(?s)incompatible changes.*New2: removed.*a patch release must not break`, "make", "release", "VERSION=v0.99.3")
	undo()

	// What go vet finds.
	repo.Write("new.go", "package redlatch\n\n// New2 is new.\nfunc New2() int { return two }\n")
	commit("what does not compile")
	want(`go vet: .*(?s:.*)undefined: two`, "make", "release", "VERSION=v0.99.3")
	undo()

	// A replacement.
	repo.Run("go", "mod", "edit", "-replace=github.com/redis/go-redis/v9=../fork", "redlatchgoredis/go.mod")
	want("not committed", "make", "release", "VERSION=v0.99.4")
	repo.Run("git", "reset", "--quiet", "--hard")
	repo.Run("go", "mod", "edit", "-replace=example.com/unused=../fork", "redlatchgoredis/go.mod")
	commit("a fork")
	want(`redlatchgoredis/v0.99.4 must not be published:\n  it replaces modules`, "make", "release", "VERSION=v0.99.4")
	undo()
	repo.Run("go", "mod", "edit", "-require=example.com/library@v1.0.0", "go.mod")
	repo.Run("git", "commit", "--quiet", "--all", "--message=a requirement")
	repo.Run("git", "tag", "v0.99.5")
	want(`v0.99.5 must not be published:\n  the root module requires example.com/library`, "scripts/releasable.sh", "v0.99.5")
}

// begins has a user do what the quickstart begins with, and build its program.
func begins(t *testing.T, env []string) {
	t.Helper()
	user := shop(t, env, "\n# Quickstart\n")
	user.Run("go", "mod", "tidy")
	user.Run("go", "vet", ".")
}

// besideAClone has a user do what the quickstart says, and build its program so.
func besideAClone(t *testing.T, env []string) {
	t.Helper()
	user := shop(t, append(slices.Clip(env), "GOWORK="), "\n## Beside a clone\n")
	user.Run("go", "vet", ".")
}

// shop has a user carry out the first commands below a heading of the quickstart,
// and copy its program.
func shop(t *testing.T, env []string, heading string) folder.Folder {
	t.Helper()
	here := folder.At(t, top)
	commands := regexp.MustCompile("(?s)" + heading + ".*?```sh\n(.*?)```").FindStringSubmatch("\n" + here.Read("docs/quickstart.md"))
	if commands == nil {
		t.Fatalf("the quickstart has no commands below %q", heading)
	}
	user := folder.At(t, t.TempDir(), env...)
	user.Run("bash", "-euc", commands[1])
	user.Dir = filepath.Join(user.Dir, "shop")
	for _, name := range []string{"main.go", "main_test.go"} {
		user.Write(name, here.Read("examples/quickstart/"+name))
	}
	return user
}

// What README shows first works in a clone.
func TestReadmeCommands(t *testing.T) {
	_, remote := repository(t)
	clone := folder.At(t, filepath.Join(t.TempDir(), "redlatch"), "GOWORK=")
	folder.At(t, top).Run("git", "clone", "--quiet", "--branch=main", remote, clone.Dir)
	text := clone.Read("README.md")
	for _, command := range []string{"go run ./cmd/redlatch demo", "make test"} {
		if !strings.Contains(text, "\n"+command+" ") {
			t.Errorf("README does not show %q any more", command)
		}
	}
	clone.Run("go", "run", "./cmd/redlatch", "demo", "--plain", "--for", "2s")

	// All of make test takes a minute; here are a few packages.
	if servers, err := filepath.Abs(filepath.Join(top, ".servers")); err != nil {
		t.Fatal(err)
	} else if _, err := os.Stat(servers); err == nil {
		if err := os.Symlink(servers, filepath.Join(clone.Dir, ".servers")); err != nil {
			t.Fatal(err)
		}
	}
	if got := clone.Run("make", "test", "PUBLISHED=redlatchrueidis", "SLOW=/cmd/|/tests/[^o]"); !regexp.MustCompile(`(?m)^ok\s+\S+/tests/otel\s`).MatchString(got) {
		t.Errorf("make test says\n%s", got)
	}
}
