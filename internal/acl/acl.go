// Package acl knows what users of the servers must be allowed to for redlatch to
// work: which commands its scripts and drivers use, and how its keys and channels
// are called. Doctor, the documentation and the tests have it from here; tests
// compare it with the scripts, and with what servers are really sent.
package acl

import (
	"maps"
	"slices"

	"github.com/redlatch/redlatch/internal/wire"
)

// Versions of servers that rules can be for: what an older Redis does not know is
// an error in a rule. The last one stands for all that are newer, and for every
// Valkey.
var Versions = []string{"6.2", "7.0", "7.2"}

// A Rule says what a user may do.
type Rule struct {
	Version  string   // one of Versions; empty: the last
	Prefixes []string // how names begin; none: all names
	List     bool     // redlatch ls, Locks of package admin and the like as well
	Doctor   bool     // redlatch doctor as well, and what List says
	Watch    bool     // to look only, which writes nothing: redlatch ls, top, show and the like, and what List says
}

// Words returns the rule as ACL SETUSER takes it.
func (r Rule) Words() []string {
	keys, channels := []string{"*"}, patterns("", r.places(Channels))
	if len(r.Prefixes) > 0 {
		keys, channels = nil, nil
	}
	for _, p := range r.Prefixes {
		keys = append(append(keys, wire.Literally(p)+"*"), patterns(p, r.places(SideKeys))...)
		channels = append(channels, patterns(p, r.places(Channels))...)
	}
	words := []string{"resetkeys"}
	for _, k := range minimal(keys) {
		words = append(words, "~"+k)
	}
	words = append(words, "resetchannels")
	for _, c := range minimal(channels) {
		words = append(words, "&"+c)
	}
	return append(words, r.Commands()...)
}

// places returns those of some places that the rule is about.
func (r Rule) places(all []Place) []Place {
	return slices.DeleteFunc(slices.Clone(all), func(p Place) bool { return r.Watch && !p.watch })
}

// Commands returns the part of Words that is about commands.
func (r Rule) Commands() []string {
	all := slices.DeleteFunc(slices.Concat(InScripts, ByDrivers), func(c Command) bool { return r.Watch && !c.watch })
	if r.List || r.Doctor || r.Watch {
		all = append(all, ToList...)
	}
	if r.Doctor {
		all = append(all, ByDoctor...)
	}
	return commands(r.Version, all)
}

// Sentinel returns the rule for a user of sentinels.
func Sentinel(version string) []string {
	return append([]string{"resetkeys", "resetchannels", "&*"}, commands(version, ToSentinels)...)
}

func commands(version string, all []Command) []string {
	rights := map[string]bool{}
	for _, c := range all {
		if version == "" || c.since <= version {
			rights["+"+c.right()] = true
		}
	}
	return append([]string{"-@all"}, slices.Sorted(maps.Keys(rights))...)
}
