package real

import (
	"errors"
	"maps"
	"os"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/tests/sim"
)

// record plays a seed of a type.
func record(t *testing.T, seed uint64, typ string) *sim.Recording {
	t.Helper()
	plan, err := sim.Standard(seed, typ)
	if err != nil {
		t.Fatal(err)
	}
	plan.Recording = &sim.Recording{}
	var report *sim.Report
	synctest.Test(t, func(*testing.T) { report = sim.Play(plan) })
	if err := report.Err(); err != nil {
		t.Errorf("%s, seed %d: %v\nto replay its faults, though perhaps in another order of goroutines: make sim SEED=%d TYPE=%s", typ, seed, err, seed, typ)
	}
	return plan.Recording
}

// TestTheEmbeddedServerAnswersAsRealOnesDo replays what the embedded server has
// executed on each real one.
func TestTheEmbeddedServerAnswersAsRealOnesDo(t *testing.T) {
	seeds := []uint64{0}
	if os.Getenv("REDLATCH_PROOF") != "" {
		seeds = []uint64{0, 1, 2, 3, 4, 5}
	}
	var records []*sim.Record
	seen, steps := map[string]int{}, 0
	for _, typ := range sim.Types() {
		for _, seed := range seeds {
			all := record(t, seed, typ).Servers
			records = append(records, all...)
			for _, x := range all {
				for _, step := range x.Steps {
					seen[step.Script.Name()]++
					steps++
				}
			}
		}
	}
	t.Logf("%d scripts: %v", steps, seen)
	if steps < 500*len(sim.Types()) || len(seen) < 20 {
		t.Errorf("only %d scripts, %v: that shows nothing", steps, slices.Sorted(maps.Keys(seen)))
	}
	for _, kind := range testserver.EveryKind() {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			r := newReplay(t, kind)
			for _, x := range records {
				r.play(x)
			}
			for _, text := range r.wrong {
				t.Error(text)
			}
			if r.steps != steps {
				t.Errorf("replayed are %d of %d scripts", r.steps, steps)
			}
		})
	}
}

// TestAWrongEmbeddedServerIsNoticed has a record in which the embedded server is
// wrong in one thing at a time.
func TestAWrongEmbeddedServerIsNoticed(t *testing.T) {
	all := record(t, 1, "readwrite").Servers
	if len(all) != 1 {
		t.Fatalf("%d servers, where no data is lost", len(all))
	}
	good := all[0].Steps
	r := newReplay(t, testserver.Redis)
	// begun returns the record until the first script that is so.
	begun := func(is func(s *sim.Step) bool) []sim.Step {
		for i := range good {
			if is(&good[i]) {
				return slices.Clone(good[:i+1])
			}
		}
		t.Fatal("there is no such script")
		return nil
	}
	asked := func(cmd string) func(s *sim.Step) bool {
		return func(s *sim.Step) bool {
			return slices.ContainsFunc(s.Calls, func(c sim.Call) bool { return c.Args[0] == cmd && !c.Injected })
		}
	}
	// change changes the answer to a command of a script.
	change := func(cmd string, reply any) func(s *sim.Step) {
		return func(s *sim.Step) {
			s.Calls = slices.Clone(s.Calls)
			i := slices.IndexFunc(s.Calls, func(c sim.Call) bool { return c.Args[0] == cmd })
			s.Calls[i].Reply = reply
		}
	}
	stored := func(is func(k sim.Key) bool) func(s *sim.Step) bool {
		return func(s *sim.Step) bool { return slices.ContainsFunc(s.After, is) }
	}
	left := func(is func(k sim.Key) bool, how func(k *sim.Key)) func(s *sim.Step) {
		return func(s *sim.Step) {
			s.After = slices.Clone(s.After)
			how(&s.After[slices.IndexFunc(s.After, is)])
		}
	}
	hash := func(k sim.Key) bool { return k.Kind == "hash" && k.Ends }
	for _, c := range []struct {
		what  string
		where func(s *sim.Step) bool
		wrong func(s *sim.Step)
	}{
		{"PEXPIRE answers 0", asked("PEXPIRE"), change("PEXPIRE", 0)},
		{"HSET answers text", asked("HSET"), change("HSET", "1")},
		{"PUBLISH answers text", asked("PUBLISH"), change("PUBLISH", "1")},
		{"a key has no TTL for PTTL", func(s *sim.Step) bool {
			return slices.ContainsFunc(s.Calls, func(c sim.Call) bool { n, is := c.Reply.(int); return c.Args[0] == "PTTL" && is && n > 0 })
		}, func(s *sim.Step) {
			s.Calls = slices.Clone(s.Calls)
			for i, c := range s.Calls {
				if n, is := c.Reply.(int); c.Args[0] == "PTTL" && is && n > 0 {
					s.Calls[i].Reply = -1
				}
			}
		}},
		{"HGETALL forgets a field", func(s *sim.Step) bool {
			return slices.ContainsFunc(s.Calls, func(c sim.Call) bool { l, is := c.Reply.([]any); return c.Args[0] == "HGETALL" && is && len(l) > 0 })
		}, change("HGETALL", nil)},
		{"a key keeps its TTL", stored(hash), left(hash, func(k *sim.Key) { k.Ends = false })},
		{"a field has another value", stored(hash), left(hash, func(k *sim.Key) { k.Content = append(slices.Clone(k.Content[:len(k.Content)-1]), "7") })},
		{"a key is missing", stored(hash), func(s *sim.Step) { s.After = slices.DeleteFunc(slices.Clone(s.After), hash) }},
		{"a script returns something else", asked("HSET"), func(s *sim.Step) { s.Reply = "something else" }},
		{"a command is not given", asked("PEXPIRE"), func(s *sim.Step) { s.Calls = s.Calls[:len(s.Calls)-1] }},
		{"a command is refused", asked("PEXPIRE"), change("PEXPIRE", errors.New("WRONGTYPE"))},
	} {
		steps := begun(c.where)
		r.wrong = nil
		if r.play(&sim.Record{Steps: steps}); len(r.wrong) > 0 {
			t.Fatalf("%s: before that, %s", c.what, r.wrong[0])
		}
		c.wrong(&steps[len(steps)-1])
		if r.play(&sim.Record{Steps: steps}); len(r.wrong) == 0 {
			t.Errorf("%s, and nobody notices", c.what)
		} else {
			t.Logf("%s: %s", c.what, r.wrong[0])
		}
	}
}
