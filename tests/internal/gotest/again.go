package main

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/redlatch/redlatch/internal/standstill"
)

// A retry is what runs once more: packages, or tests of a package.
type retry struct {
	packages []string
	tests    []string   // none: all
	why      []unproven // what is to be said of them, if they pass
}

// again runs what failed and says nothing about the library once more, and says
// whether all of it passed. If anything else failed, it runs nothing.
func (r *run) again(dir, label, seed string, args []string) (ok bool, err error) {
	all, ok := r.excused()
	if !ok {
		return false, nil
	}
	flags := slices.DeleteFunc(slices.Clone(args), isPackage)
	for _, s := range all {
		more, what := slices.Clone(flags), "the race detector failed, not a test"
		if len(s.tests) > 0 {
			for i, name := range s.tests {
				s.tests[i] = regexp.QuoteMeta(name)
			}
			more = append(more, "-count=1", "-run=^("+strings.Join(s.tests, "|")+")$")
			what = "a process stood still while its tests failed"
		}
		fmt.Printf("... %s: %s: once more\n", label, what)
		next, err := execute(dir, label, seed, append(more, s.packages...))
		if err != nil || !next.ok {
			return false, err
		}
		r.all += next.all
		for path, p := range next.packages {
			r.packages[path].took += p.took
		}
		r.unproven = slices.Concat(r.unproven, next.unproven, s.why)
	}
	return true, nil
}

// isPackage says whether an argument of go test is no flag and no value of one.
func isPackage(arg string) bool {
	return strings.HasPrefix(arg, "./") || strings.HasPrefix(arg, "github.com/")
}

// excused returns what to run once more, or false if something failed that nothing
// excuses.
func (r *run) excused() (all []retry, ok bool) {
	if r.broken {
		return nil, false
	}
	var detector []string
	for _, p := range r.packages {
		if !p.failed {
			continue
		}
		failed := slices.DeleteFunc(slices.Clone(p.order), func(t *test) bool { return !t.failed })
		switch {
		case p.detector && !p.raced && len(failed) == 0:
			detector = append(detector, p.path)
		case !p.ended || p.raced || len(failed) == 0:
			return nil, false
		default:
			s := retry{packages: []string{p.path}}
			for _, t := range failed {
				long := p.stoodStill(t)
				if long < standstill.Notable {
					return nil, false
				}
				if t.name == whole(t.name) {
					s.tests = append(s.tests, t.name)
					why := fmt.Sprintf("the process stood still for %v when it failed; it passes", long.Round(time.Millisecond))
					s.why = append(s.why, unproven{p.name(), t.name, why})
				}
			}
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b retry) int { return cmp.Compare(a.packages[0], b.packages[0]) })
	if slices.Sort(detector); len(detector) > 0 {
		all = append(all, retry{packages: detector})
	}
	return all, len(all) > 0
}

// stoodStill returns the longest standstill during a test.
func (p *pkg) stoodStill(t *test) (longest time.Duration) {
	for _, s := range p.stood {
		if s.end.After(t.begin) && s.begin.Before(t.end) {
			longest = max(longest, s.end.Sub(s.begin))
		}
	}
	return longest
}
