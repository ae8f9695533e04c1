// Package doctor looks at a Redis or Valkey for what is bad for locks: settings
// that forget them, rights that are missing, and what others have left behind.
//
// It reads, but for one thing: it tries the commands of redlatch's scripts on a
// key of its own, "redlatch_doctor:" and a random number, which the script that
// writes it also deletes.
//
// Each check is a function of a visit to one server, and returns findings. What
// a server does not let it see is a finding too, and no error.
package doctor

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"
)

// A Severity says how bad a finding is.
type Severity string

// The severities, in rising order.
const (
	OK      Severity = "ok"
	Note    Severity = "note"    // worth knowing
	Warning Severity = "warning" // locks will be lost or late in a case that is to be expected
	Problem Severity = "problem" // locks do not work, or will be lost in normal operation
)

var severities = []Severity{OK, Note, Warning, Problem}

func (s Severity) rank() int { return slices.Index(severities, s) }

// A Finding is one thing that a check has seen. The tags are a contract; see
// docs/cli.md.
type Finding struct {
	Check       string   `json:"check"`
	Severity    Severity `json:"severity"`
	Servers     []string `json:"servers"` // where
	What        string   `json:"what"`
	Consequence string   `json:"consequence"` // empty if the severity is OK
	Remedy      string   `json:"remedy"`      // as Consequence
}

// A Report is all that was found, the worst first.
type Report struct {
	Severity Severity  `json:"severity"` // of the worst
	Servers  []string  `json:"servers"`
	Findings []Finding `json:"findings"`
}

// Options say how to look.
type Options struct {
	// MaxClockSkew is redlatch.Config's.
	MaxClockSkew time.Duration
	// Keys is how many keys of a server are looked at, at most. With 0 the checks
	// of keys are left out.
	Keys int
	// Prefix stands before the name of the key that is written, and Database is the
	// number of the database that has it.
	Prefix   string
	Database int
	// Linger is how long a free lock that somebody queues for is given to be
	// taken.
	Linger time.Duration
}

// checks in the order in which they are done and, among equals, shown.
var checks = []func(*visit) []Finding{
	access, server, latency, clock, eviction, persistence, replicas, connections,
	scripts, commands, pubsub, sharding, keys,
}

// Examine looks at every server. It fails only if none of them can be reached.
func Examine(ctx context.Context, servers []Server, opt Options) (Report, error) {
	r := Report{Severity: OK, Servers: []string{}, Findings: []Finding{}}
	var lost []error
	for _, s := range servers {
		r.Servers = append(r.Servers, s.Address())
		v := &visit{Server: s, ctx: ctx, opt: opt}
		v.read()
		for _, check := range checks {
			if v.lost == nil {
				r.add(s.Address(), check(v))
			}
		}
		if v.lost != nil {
			lost = append(lost, v.lost)
			r.add(s.Address(), found("server", Problem, "this primary cannot be reached: "+v.lost.Error(),
				"the locks of its slots can be neither acquired nor renewed until a replica has taken over", "see whether it runs, and the network between"))
		}
	}
	if len(lost) == len(servers) || ctx.Err() != nil {
		return Report{}, errors.Join(append(lost, ctx.Err())...)
	}
	slices.SortStableFunc(r.Findings, func(x, y Finding) int { return cmp.Compare(y.Severity.rank(), x.Severity.rank()) })
	if len(r.Findings) > 0 {
		r.Severity = r.Findings[0].Severity
	}
	return r, nil
}

// add adds what was found at a server. What was found at others, too, stands
// once.
func (r *Report) add(address string, found []Finding) {
	for _, f := range found {
		i := slices.IndexFunc(r.Findings, func(old Finding) bool {
			return old.Check == f.Check && old.Severity == f.Severity && old.What == f.What
		})
		if i >= 0 {
			r.Findings[i].Servers = append(r.Findings[i].Servers, address)
			continue
		}
		f.Servers = []string{address}
		r.Findings = append(r.Findings, f)
	}
}

// fine is the finding of a check that has nothing to complain of.
func fine(check, what string) []Finding {
	return []Finding{{Check: check, Severity: OK, What: what}}
}

// found is a finding of any other kind.
func found(check string, s Severity, what, consequence, remedy string) []Finding {
	return []Finding{{Check: check, Severity: s, What: what, Consequence: consequence, Remedy: remedy}}
}
