package acl

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/internal/lua"
	"github.com/redlatch/redlatch/internal/script"
	"github.com/redlatch/redlatch/internal/wire"
)

const top = "../.."

// call is how a script calls a command.
var call = regexp.MustCompile(`redis\.p?call\('([A-Z]+)'(?:, '([A-Z]+)')?`)

// The commands that are listed are those of the scripts.
func TestCommandsAreThoseOfScripts(t *testing.T) {
	var files []string
	for _, pattern := range []string{"internal/lua/*.lua", "internal/lua/*.luainc", "fence/*.lua", "fence/*.luainc", "internal/script/*.luainc"} {
		found, err := filepath.Glob(filepath.Join(top, pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	if len(files) < 50 {
		t.Fatalf("only %d files", len(files))
	}
	used := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range call.FindAllStringSubmatch(string(text), -1) {
			used[Command{Args: m[1] + " " + m[2]}.right()] = true
		}
		if n, all := len(call.FindAll(text, -1)), strings.Count(string(text), "redis.call(")+strings.Count(string(text), "redis.pcall("); n != all {
			t.Errorf("%s: %d of %d calls were understood", file, n, all)
		}
	}
	listed := map[string]bool{}
	for _, c := range InScripts {
		listed[c.right()] = true
		if !used[c.right()] {
			t.Errorf("%s is listed, and no script uses it", c.right())
		}
	}
	for right := range used {
		if !listed[right] {
			t.Errorf("scripts use %s, which is not listed", right)
		}
	}
}

// Whoever only looks sends these scripts. Each command of its rule is in one of
// them, or of the drivers; tests on servers look what else they need, and that
// none of it writes.
func TestCommandsToWatchAreThoseOfScripts(t *testing.T) {
	used := map[string]bool{}
	for _, s := range []*script.Script{
		lua.LockInfo, lua.LockTTLs, lua.SemaphoreInfo, lua.RateLimiterInfo, lua.BarrierInfo,
		lua.ClientAsk, lua.ClientRead, lua.ClientTell, lua.PubSubCount, lua.PubSubProbe,
	} {
		for _, m := range call.FindAllStringSubmatch(s.Source(), -1) {
			used[Command{Args: m[1] + " " + m[2]}.right()] = true
		}
	}
	for _, c := range InScripts {
		if c.watch && !used[c.right()] {
			t.Errorf("%s is for whoever only looks, and none of its scripts uses it", c.right())
		}
	}
	all := Rule{List: true}.Words()
	for _, word := range (Rule{Watch: true}).Words() {
		if !slices.Contains(all, word) {
			t.Errorf("who may use locks may not do %s", word)
		}
	}
}

// Who only looks reads what belongs to names that begin so, and publishes nothing
// that others act on.
func TestPatternsToWatch(t *testing.T) {
	words := Rule{Watch: true, Prefixes: []string{"orders:"}}.Words()
	for key, want := range map[string]bool{
		"orders:1": true, "redisson_lock_queue:{orders:1}": true, "{orders:1}:timeout": true, "redlatch_client:x": true, "redlatch_barrier:{orders:1}:7": true,
		"invoices": false, "redisson_lock_queue:{invoices}": false, "redlatch_revoke:{orders:1}": false, "redlatch_session:{orders:1}:x:y": false,
	} {
		if got := allowed(words, "~", key); got != want {
			t.Errorf("key %s is allowed: %v", key, got)
		}
	}
	for _, rule := range [][]string{words, Rule{Watch: true}.Words()} {
		channels := slices.DeleteFunc(slices.Clone(rule), func(word string) bool { return word[0] != '&' })
		if want := []string{"&" + wire.Asked, "&" + wire.Answers}; !slices.Equal(channels, want) {
			t.Errorf("channels %q", channels)
		}
	}
}

// Every constant of package wire that begins a key or a channel is of a place.
func TestPlacesAreThoseOfWire(t *testing.T) {
	places := strings.Join(patterns("NAME", slices.Concat(Channels, SideKeys)), " ") + " "
	text, files := "", []string{"names.go", "sidekeys.go"}
	for _, file := range files {
		b, err := os.ReadFile(filepath.Join(top, "internal/wire", file))
		if err != nil {
			t.Fatal(err)
		}
		text += string(b)
	}
	found := regexp.MustCompile(`"((?:redisson|redlatch)_[a-z_]*[a-z])[^a-z"]*[^"]*"`).FindAllStringSubmatch(text, -1)
	if len(found) < 14 {
		t.Fatalf("found %q only", found)
	}
	for _, m := range found {
		if !regexp.MustCompile(m[1] + `(__\{|:| )`).MatchString(places) {
			t.Errorf("%s is in no place", m[1])
		}
	}
}

// The patterns of a prefix match the keys and channels of names that begin with
// it, with braces and without, and no others.
func TestPatterns(t *testing.T) {
	const uuid = "2628bb85-29a0-8bdd-8b35-e7415bb697b1"
	of := func(name string) (keys, channels []string) {
		for _, p := range []string{wire.LockQueue, wire.LockTimeout, wire.LockAlive, wire.LockToken, wire.RWWriters, wire.RateRecount, wire.Barrier, wire.BarrierAlive, wire.Fence} {
			keys = append(keys, wire.Prefix(p, name))
		}
		for _, s := range []string{wire.PermitTimeout, wire.RateValue, wire.RatePermits} {
			keys = append(keys, wire.Suffix(name, s))
		}
		for _, p := range []string{wire.LockChannel, wire.RWChannel, wire.SemaphoreChannel, wire.BarrierChannel} {
			channels = append(channels, wire.Prefix(p, name))
		}
		return append(keys, name, wire.ReadTimeout(name, uuid+":7", 3), wire.Session(name, uuid, "change"), wire.Prefix(wire.Barrier, name)+":"+uuid+":1", wire.Prefix(wire.RateRecount, name)+":"+uuid,
				wire.Suffix(name, wire.RateValue)+":"+uuid, wire.Suffix(name, wire.RatePermits)+":"+uuid),
			append(channels, wire.LatchChannel(name), wire.FairChannel(name, uuid+":7"))
	}
	entry := func(object string) string { return wire.Entry(object, "42", "lock") }
	for _, tc := range []struct {
		prefix         string
		inside, beside []string
	}{
		{"orders:", []string{"orders:1", "orders:", "orders:{a}", "orders:a{b}c"}, []string{"order", "xorders:1", "{orders:}1", "invoices"}},
		{"{orders}:", []string{"{orders}:1", "{orders}:{x}"}, []string{"orders:1", "{orders:}:1", "{order}:1"}},
		{"{accounts}:", []string{entry("accounts")}, []string{entry("accounts2")}},
		{"{accounts", []string{entry("accounts"), entry("accounts2")}, []string{entry("account")}},
		{"{tenant}:accounts", []string{entry("{tenant}:accounts")}, []string{entry("tenant")}},
		{"a*[b]?", []string{"a*[b]?", "a*[b]?x"}, []string{"axb", "a*[b]", "axxb?"}},
		{"", []string{"orders:1", "{a}b"}, nil},
	} {
		words := Rule{Prefixes: []string{tc.prefix}}.Words()
		for _, name := range tc.inside {
			keys, channels := of(name)
			for _, key := range keys {
				if !allowed(words, "~", key) {
					t.Errorf("%s: key %s is not allowed", tc.prefix, key)
				}
			}
			for _, channel := range channels {
				if !allowed(words, "&", channel) {
					t.Errorf("%s: channel %s is not allowed", tc.prefix, channel)
				}
			}
		}
		for _, name := range tc.beside {
			keys, channels := of(name)
			for _, key := range keys {
				if allowed(words, "~", key) {
					t.Errorf("%s: key %s is allowed", tc.prefix, key)
				}
			}
			for _, channel := range channels {
				if allowed(words, "&", channel) {
					t.Errorf("%s: channel %s is allowed", tc.prefix, channel)
				}
			}
		}
		if !allowed(words, "&", "redlatch_control:"+uuid) {
			t.Errorf("%s: the control channel is not allowed", tc.prefix)
		}
		if !allowed(words, "~", wire.ClientKey(uuid)) || !allowed(words, "&", wire.Asked) || !allowed(words, "&", wire.Answers) {
			t.Errorf("%s: the census is not allowed", tc.prefix)
		}
	}
}

// allowed says whether a pattern among words, marked so, matches text.
func allowed(words []string, mark, text string) bool {
	return slices.ContainsFunc(words, func(word string) bool {
		pattern, ok := strings.CutPrefix(word, mark)
		if !ok {
			return false
		}
		var re strings.Builder
		for i := 0; i < len(pattern); i++ {
			switch pattern[i] {
			case '*':
				re.WriteString(".*")
			case '\\':
				i++
				fallthrough
			default:
				re.WriteString(regexp.QuoteMeta(pattern[i : i+1]))
			}
		}
		return regexp.MustCompile("^" + re.String() + "$").MatchString(text)
	})
}

// Older servers get a rule without what they do not know.
func TestVersions(t *testing.T) {
	for version, without := range map[string][]string{
		"":    nil,
		"7.2": nil,
		"7.0": {"+client|setinfo", "+cluster|shards"},
		"6.2": {"+client|setinfo", "+cluster|shards", "+pubsub|shardnumsub", "+spublish", "+ssubscribe", "+sunsubscribe"},
	} {
		got := Rule{Version: version}.Commands()
		for _, word := range (Rule{}).Commands() {
			if has := slices.Contains(got, word); has == slices.Contains(without, word) {
				t.Errorf("for %q: %s: %v", version, word, has)
			}
		}
	}
	doctor := Rule{Doctor: true}.Commands()
	if !slices.Contains(doctor, "+config|get") || slices.Contains(Rule{}.Commands(), "+config|get") {
		t.Error("CONFIG GET is for doctor, and for nobody else")
	}
}

func TestSeveralPrefixes(t *testing.T) {
	words := Rule{Prefixes: []string{"a:", "b:", "a:b:"}}.Words()
	for _, want := range []string{"~a:*", "~b:*", "&redisson_sc:{a:*}", "&redisson_sc:{b:*}"} {
		if !slices.Contains(words, want) {
			t.Errorf("%s is missing", want)
		}
	}
	for _, word := range words {
		if strings.Contains(word, "a:b:") || strings.Count(strings.Join(words, "\n")+"\n", word+"\n") != 1 {
			t.Errorf("%s says nothing new", word)
		}
	}
}
