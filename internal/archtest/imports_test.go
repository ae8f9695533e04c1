package archtest

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	root = "github.com/redlatch/redlatch"

	goredis  = "github.com/redis/go-redis/v9"
	rueidis  = "github.com/redis/rueidis"
	valkeygo = "github.com/valkey-io/valkey-go"
	yaml     = "go.yaml.in/yaml/v3"

	prometheus = "github.com/prometheus/client_golang"
	otel       = "go.opentelemetry.io/otel"
	gocron     = "github.com/go-co-op/gocron/v2"
)

// mayImport says what the non-test files of each package may import beside the
// standard library: packages of ours by their folder ("." is the root package),
// modules of others with all below them.
var mayImport = map[string][]string{
	"internal/wire":         {},
	"driver":                {"internal/wire"},
	"internal/script":       {"driver"},
	"internal/lua":          {"internal/script"},
	"internal/acl":          {"internal/wire"},
	"internal/gate":         {"internal/queue"},
	"internal/notify":       {},
	"internal/renew":        {},
	"internal/worker":       {},
	"internal/waitq":        {"internal/claim", "internal/queue", "internal/request"},
	"internal/poll":         {"driver", "internal/claim", "internal/notify", "internal/queue", "internal/request", "internal/script", "internal/waitq"},
	"internal/barrier":      {"driver", "internal/callsite", "internal/claim", "internal/invalid", "internal/lua", "internal/poll", "internal/queue", "internal/request", "internal/script", "internal/wire"},
	"internal/latch":        {"driver", "internal/callsite", "internal/claim", "internal/lua", "internal/poll", "internal/request", "internal/script", "internal/wire"},
	"internal/election":     {"internal/lock", "internal/notify", "internal/request"},
	"internal/queue":        {},
	"internal/callsite":     {},
	"internal/claim":        {"internal/callsite"},
	"internal/fact":         {"internal/holdctx"},
	"internal/holdctx":      {},
	"internal/invalid":      {},
	"internal/lastuser":     {},
	"internal/nameclash":    {"internal/invalid", "internal/wire"},
	"internal/lock":         {"internal/claim", "internal/fact", "internal/holdctx", "internal/invalid", "internal/lock/fair", "internal/lock/readers", "internal/lock/term", "internal/lock/wait", "internal/lua", "internal/nameclash", "internal/request", "internal/wire"},
	"internal/lock/readers": {"internal/claim", "internal/lock/term", "internal/lock/wait", "internal/lua", "internal/request", "internal/waitq"},
	"internal/lock/fair":    {"driver", "internal/lock/term", "internal/lock/wait", "internal/lua", "internal/queue", "internal/request", "internal/wire"},
	"internal/lock/wait":    {"driver", "internal/callsite", "internal/claim", "internal/fact", "internal/gate", "internal/handoff", "internal/lock/term", "internal/lua", "internal/notify", "internal/queue", "internal/request", "internal/wire"},
	"internal/lock/term":    {"driver", "internal/callsite", "internal/claim", "internal/fact", "internal/gate", "internal/handoff", "internal/holdctx", "internal/invalid", "internal/lua", "internal/nameclash", "internal/notify", "internal/queue", "internal/renew", "internal/request", "internal/script", "internal/wire", "internal/worker"},
	"internal/multi":        {"internal/fact", "internal/handoff", "internal/holdctx", "internal/invalid", "internal/lock", "internal/lock/term", "internal/lock/wait", "internal/request"},
	"internal/census":       {"driver", "internal/claim", "internal/inspect", "internal/invalid", "internal/lua", "internal/request", "internal/wire"},
	"internal/inspect":      {"driver", "internal/claim", "internal/lua", "internal/request", "internal/script", "internal/wire"},
	"internal/revoke":       {"driver", "internal/lock", "internal/lua", "internal/request", "internal/script", "internal/wire", "internal/worker"},
	"internal/handoff":      {"internal/fact", "internal/request", "internal/wire"},
	"internal/hooks":        {"internal/census", "internal/claim", "internal/holdctx"},
	"internal/args":         {"internal/invalid", "internal/renew", "internal/wire"},
	"internal/bridge":       {"internal/args", "internal/barrier", "internal/callsite", "internal/census", "internal/election", "internal/hooks", "internal/inspect", "internal/lock", "internal/lock/term", "internal/permit", "internal/poll", "internal/ratequeue", "internal/request", "internal/revoke", "internal/nameclash"},
	"latch":                 {".", "internal/bridge", "internal/callsite", "internal/hooks", "internal/invalid", "internal/latch", "internal/request"},
	"barrier":               {".", "internal/barrier", "internal/bridge", "internal/hooks", "internal/invalid", "internal/request", "internal/nameclash", "internal/wire"},
	"ratelimit":             {".", "internal/args", "internal/bridge", "internal/callsite", "internal/hooks", "internal/inspect", "internal/invalid", "internal/ratelimit", "internal/ratequeue", "internal/renew", "internal/request", "internal/nameclash"},
	"admin":                 {".", "internal/bridge", "internal/census", "internal/inspect", "internal/request", "internal/revoke", "internal/wire", "ratelimit"},
	"redisson":              {".", "internal/bridge", "internal/renew", "internal/wire"},
	"observe":               {".", "admin", "internal/bridge", "internal/census", "internal/claim", "internal/hooks"},
	"semaphore":             {".", "internal/args", "internal/bridge", "internal/callsite", "internal/hooks", "internal/invalid", "internal/lock", "internal/lock/term", "internal/permit", "internal/renew", "internal/request", "internal/nameclash"},
	"election":              {".", "internal/args", "internal/bridge", "internal/election", "internal/hooks", "internal/invalid", "internal/lock", "internal/wire"},
	"internal/permit":       {"driver", "internal/callsite", "internal/claim", "internal/fact", "internal/handoff", "internal/holdctx", "internal/lua", "internal/notify", "internal/queue", "internal/renew", "internal/request", "internal/script", "internal/waitq", "internal/wire"},
	"internal/ratequeue":    {"driver", "internal/callsite", "internal/claim", "internal/fact", "internal/invalid", "internal/lua", "internal/queue", "internal/request", "internal/waitq", "internal/wire"},
	"internal/ratelimit":    {"driver", "internal/fact", "internal/inspect", "internal/lua", "internal/ratequeue", "internal/request", "internal/script", "internal/wire"},
	"internal/request":      {"driver", "internal/fact", "internal/invalid", "internal/lua", "internal/notify", "internal/queue", "internal/renew", "internal/script", "internal/wire", "internal/worker"},
	".":                     {"driver", "internal/args", "internal/barrier", "internal/bridge", "internal/callsite", "internal/census", "internal/claim", "internal/election", "internal/fact", "internal/handoff", "internal/holdctx", "internal/hooks", "internal/inspect", "internal/invalid", "internal/lastuser", "internal/lock", "internal/lock/term", "internal/multi", "internal/permit", "internal/poll", "internal/ratequeue", "internal/renew", "internal/request", "internal/revoke", "internal/nameclash", "internal/wire", "internal/worker"},
	"internal/promtext":     {},
	"internal/overview":     {".", "admin", "internal/promtext", "internal/wire"},
	"dashboard":             {".", "internal/overview", "internal/promtext"},
	"internal/adapter":      {"driver", "internal/mask", "internal/wire"},
	"redlatchgoredis":       {".", "connect", "driver", "internal/adapter", goredis},
	"redlatchrueidis":       {".", "connect", "driver", "internal/adapter", "internal/wire", rueidis},
	"redlatchvalkey":        {".", "connect", "driver", "internal/adapter", "internal/wire", valkeygo},
	"internal/bounded":      {},
	"internal/valkeygen":    {},
	"internal/mask":         {},
	"connect":               {".", "driver", "internal/bounded", "internal/mask"},
	"redissonyaml":          {".", "connect", "internal/bounded", "internal/wire", yaml},
	"redlatchprom":          {".", "election", "internal/promtext", "observe", prometheus},
	"redlatchotel":          {".", "election", "observe", otel},
	"redlatchgocron":        {".", "election", gocron},
	"fence":                 {"driver", "internal/script", "internal/wire"},
}

// forTests exist for tests: only they may import "testing", which would put its
// flags into users' programs, and no other package may import them.
var forTests = []string{"drivertest", "redlatchtest", "internal/faultnet", "internal/heldport", "internal/leaktest", "internal/pipe", "internal/puppet", "internal/randtest", "internal/standstill", "internal/testserver"}

func TestImportDirection(t *testing.T) {
	got := imports(t)
	for pkg := range got {
		dir := strings.TrimPrefix(strings.TrimPrefix(pkg, root), "/")
		if _, ok := mayImport[cmp.Or(dir, ".")]; ok == slices.Contains(forTests, dir) {
			t.Errorf("package %s must be in one of the tables mayImport and forTests", pkg)
		}
	}
	for _, dir := range forTests {
		if got[ours(dir)] == nil {
			t.Errorf("package %s is for tests but has no Go files", dir)
		}
	}
	for dir, allowed := range mayImport {
		imps, ok := got[ours(dir)]
		if !ok {
			t.Errorf("package %s has a rule but no Go files", dir)
		}
		fits := func(rule, imp string) bool {
			return imp == ours(rule) || imp == rule || strings.HasPrefix(imp, rule+"/")
		}
		for _, imp := range imps {
			if !standard(imp) && !slices.ContainsFunc(allowed, func(rule string) bool { return fits(rule, imp) }) {
				t.Errorf("package %s imports %s; beside the standard library it may import %q", dir, imp, allowed)
			}
		}
		for _, rule := range allowed {
			if !slices.ContainsFunc(imps, func(imp string) bool { return fits(rule, imp) }) {
				t.Errorf("package %s may import %s, and does not any more", dir, rule)
			}
		}
	}
}

// Whoever imports the root package gets the standard library and what is ours, at
// any depth.
func TestRootPullsInNothing(t *testing.T) {
	got := imports(t)
	reached := []string{root}
	for i := 0; i < len(reached); i++ { // reached grows while we walk it
		for _, imp := range got[reached[i]] {
			_, known := got[imp]
			switch {
			case known && !slices.Contains(reached, imp):
				reached = append(reached, imp)
			case !known && !standard(imp):
				t.Errorf("the root package pulls in %s, through %s", imp, reached[i])
			}
		}
	}
}

func TestTestingStaysInTests(t *testing.T) {
	helpers := make([]string, len(forTests))
	for i, dir := range forTests {
		helpers[i] = ours(dir)
	}
	for pkg, imps := range imports(t) {
		if slices.Contains(helpers, pkg) {
			continue
		}
		for _, imp := range imps {
			if imp == "testing" || strings.HasPrefix(imp, "testing/") || slices.Contains(helpers, imp) {
				t.Errorf("package %s imports %s outside its tests", pkg, imp)
			}
		}
	}
}

// ours returns the import path of the package, or of the module, in a folder.
func ours(dir string) string { return path.Join(root, dir) }

// standard reports whether imp is in the standard library: every other path begins
// with a host name.
func standard(imp string) bool {
	host, _, _ := strings.Cut(imp, "/")
	return !strings.Contains(host, ".")
}

// imports returns, by import path, what the non-test files of each package of the
// library import.
func imports(t *testing.T) map[string][]string {
	t.Helper()
	got := map[string][]string{}
	for _, src := range sources(t) {
		pkg := ours(src.dir)
		for _, spec := range src.ast.Imports {
			imp, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			got[pkg] = append(got[pkg], imp)
		}
		got[pkg] = slices.Compact(slices.Sorted(slices.Values(got[pkg])))
	}
	return got
}
