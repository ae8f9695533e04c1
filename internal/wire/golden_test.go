package wire

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// goldenFile is what this test reads of the golden files that tests/interop
// records from Redisson: where a lock of some name keeps what.
type goldenFile struct {
	Vectors []struct {
		Kind, Name string
		Steps      []struct {
			Subscribed, Messages []string
			Scripts              []struct{ Keys string }
			After                map[string]struct {
				Fields map[string]string
				TTLMs  int64
			}
		}
	}
}

var goldenOwner = regexp.MustCompile(`<uuid>:<t[0-9]>`)

// places are all that a lock has in Redis, by what it is called here.
func places(name, owner string) map[string]string {
	all := map[string]string{
		"the lock":        name,
		"LockChannel":     Prefix(LockChannel, name),
		"RWChannel":       Prefix(RWChannel, name),
		"LockQueue":       Prefix(LockQueue, name),
		"LockTimeout":     Prefix(LockTimeout, name),
		"the token":       Prefix(LockToken, name),
		"Redisson's own":  Prefix("redisson_unlock_latch", name) + ":<request>",
		"FairChannel":     FairChannel(name, owner),
		"of ReadTimeout":  strings.TrimSuffix(ReadTimeout(name, owner, 1), ":1"), // an argument of Redisson's scripts
		"of ReadTimeouts": strings.TrimSuffix(ReadTimeout(name, owner, 1), ":"+owner+":rwlock_timeout:1"),
	}
	maps.Copy(all, map[string]string{
		"SemaphoreChannel": Prefix(SemaphoreChannel, name),
		"PermitTimeout":    Suffix(name, PermitTimeout),
		"LatchChannel":     LatchChannel(name),
		"RateValue":        Suffix(name, RateValue),
		"RatePermits":      Suffix(name, RatePermits),
		"own RateValue":    Suffix(name, RateValue) + ":<uuid>",
		"own RatePermits":  Suffix(name, RatePermits) + ":<uuid>",
	})
	for i := range 2 {
		all["ReadTimeout"+strconv.Itoa(i+1)] = ReadTimeout(name, owner, i+1)
	}
	return all
}

// What Redisson keeps, and where it publishes, is what the functions here name.
func TestNamesAreRedissons(t *testing.T) {
	for kind, want := range map[string][]string{
		"redisson":  {"the lock", "LockChannel"},
		"fair":      {"the lock", "LockQueue", "LockTimeout", "LockChannel", "FairChannel"},
		"readwrite": {"the lock", "RWChannel", "ReadTimeout1", "ReadTimeout2", "of ReadTimeout", "of ReadTimeouts"},
		"fenced":    {"the lock", "LockChannel", "the token"},
		"spin":      {"the lock"},
		"group":     {"the lock", "LockChannel"},
		"semaphore": {"the lock", "SemaphoreChannel"},
		"permits":   {"the lock", "SemaphoreChannel", "PermitTimeout"},
		"latch":     {"the lock", "LatchChannel"},
		"rate":      {"the lock", "RateValue", "RatePermits", "own RateValue", "own RatePermits"},
	} {
		files, err := filepath.Glob("testdata/" + kind + "-*.json")
		if err != nil || len(files) == 0 {
			t.Fatalf("golden files of %s: %v, %v", kind, files, err)
		}
		for _, file := range files {
			t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) { compareNames(t, file, want) })
		}
	}
}

func compareNames(t *testing.T, file string, want []string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var g goldenFile
	if err := json.Unmarshal(text, &g); err != nil || len(g.Vectors) == 0 { //nolint:musttag // the recorder writes the fields by their Go names
		t.Fatalf("%d vectors, %v", len(g.Vectors), err)
	}
	found := map[string]bool{}
	for _, v := range g.Vectors {
		look := func(place string) {
			t.Helper()
			for called, p := range places(v.Name, goldenOwner.FindString(place)) {
				if p == place {
					found[called] = true
					return
				}
			}
			t.Errorf("lock %q: Redisson uses %q, which nothing here is called", v.Name, place)
		}
		for _, s := range v.Steps {
			for _, script := range s.Scripts {
				for key := range strings.FieldsSeq(script.Keys) {
					look(key)
				}
			}
			for key := range s.After {
				look(key)
			}
			for _, channel := range s.Subscribed {
				look(channel)
			}
			for _, m := range s.Messages {
				channel, payload, _ := strings.Cut(m, " ")
				look(channel)
				if _, err := strconv.Atoi(payload); err == nil && (v.Kind == "semaphore" || v.Kind == "permits") {
					continue // how many permits there are
				}
				if payload != "0" && payload != "1" { // a release; one of a writer, which wakes all that wait
					t.Errorf("lock %q: Redisson publishes %q", v.Name, payload)
				}
			}
			if v.Kind == "read" || v.Kind == "write" {
				compareHolders(t, s.After[v.Name].Fields)
			}
		}
	}
	for _, called := range want {
		if !found[called] {
			t.Errorf("Redisson has no place for %s", called)
		}
	}
}

// compareHolders looks at the hash of a read-write lock.
func compareHolders(t *testing.T, fields map[string]string) {
	t.Helper()
	for field := range fields {
		owner := goldenOwner.FindString(field)
		if !slices.Contains([]string{Mode, owner, WriteField(owner)}, field) {
			t.Errorf("Redisson has a field %q", field)
		}
	}
	if mode, ok := fields[Mode]; len(fields) > 0 && (!ok || mode != ModeRead && mode != ModeWrite) {
		t.Errorf("the mode of %v is %q", fields, mode)
	}
}
