package results

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/redlatch/redlatch/tests/sim"
)

// A rule is one of docs/guarantees.md that a mutant can break.
type rule struct{ name, anchor string }

// rules are all of them: the page shows those, too, that no mutant breaks.
var rules = []rule{
	{"the margin", ""},
	{"trust counts from the sending", ""},
	{"a lease lasts as long as was confirmed", ""},
	{"renewals", ""},
	{"MaxHold", ""},
	{"Shutdown", ""},
	{"a release frees what is its own", "exclusion"},
	{"one owner at a time", "exclusion"},
	{"re-entry", "exclusion"},
	{"callers of one process", "between-processes"},
	{"turns", "turns"},
	{"what is given in a fair lock's queue", "fair-locks"},
	{"readers and writers", "readers-and-writers"},
	{"late requests", "lost-and-late-requests"},
	{"requests that count", "lost-and-late-requests"},
	{"detached holds", "lost-and-late-requests"},
	{"forced releases", "lost-and-late-requests"},
	{"tokens", "fencing"},
	{"several locks", "multi-locks"},
	{"red locks", "red-locks"},
	{"replicas that confirm", "replicas"},
	{"permits", "permits-with-leases"},
	{"barriers", "latches-and-barriers"},
	{"elections", "elections"},
	{"rates", "rate-limiters"},
}

// A trouble is a fault that the simulation makes, as the page says it. told is
// empty, unless data is lost: then docs/guarantees.md says so of when the holder
// learns of it.
type trouble struct{ name, what, told string }

// troubles are all of them, in the order of the page.
var troubles = []trouble{
	{"cut", "a link is cut, one way or both", ""},
	{"stall", "a process stands still, as others see it", ""},
	{"break", "connections break", ""},
	{"kill", "a process is killed", ""},
	{"shut down", "a process shuts down in order", ""},
	{"restart", "the server restarts with its data", ""},
	{"pause", "`CLIENT PAUSE`", ""},
	{"back", "the server's clock is set back", ""},
	{"full", "`OOM`", ""},
	{"readonly disk", "`MISCONF`", ""},
	{"loading", "`LOADING`", ""},
	{"busy", "`BUSY`", ""},
	{"replica", "`READONLY`", ""},
	{"no script", "`NOSCRIPT`", ""},
	{"lag", "the replica stands still", ""},
	{"takeover", "the replica takes the place of the primary", ""},
	{"move", "a slot moves to another node, key by key", ""},
	{"cluster down", "`CLUSTERDOWN`", ""},
	{"wipe", "the server restarts without data", "within the time to reconnect"},
	{"older", "it restarts with older data", "within the time to reconnect"},
	{"failover", "a replica that lags takes its place", "within the time to reconnect"},
	{"split", "the same, and the old primary still answers", "within the time to reconnect to the new one"},
	{"evict", "a key is evicted", "within a third of the lease, or when the trust window of a `Lease` ends"},
	{"ahead", "the server's clock is set ahead", "at the next renewal, or when the trust window of a `Lease` ends"},
	{"force", "somebody forces a lock", "before, unless the holder does not answer within a second"},
}

// unknown returns an error if the page cannot say what one of these is. Of what
// loses data it has to say more.
func unknown(names iter.Seq[string], loses bool) error {
	for name := range names {
		if !slices.ContainsFunc(troubles, func(t trouble) bool { return t.name == name && (t.told != "" || !loses) }) {
			return fmt.Errorf("the page does not know the fault %q, or when a holder is told of it", name)
		}
	}
	return nil
}

// topologies are those that locks are used on, and realTopologies what a campaign
// with real servers calls them. The page shows those, too, on which nothing was
// played.
var (
	topologies     = []string{sim.OneServer, sim.WithReplica, sim.Cluster, sim.Endpoint, sim.Independent}
	realTopologies = []string{"single", "Sentinel", "Cluster", "independent servers"}
)

// Page returns docs/robustness.md, of the figures in a folder.
func Page(dir string) (string, error) {
	var s Simulation
	if err := read(dir, SimulationFile, &s); err != nil {
		return "", err
	}
	var m Mutants
	if err := read(dir, MutantsFile, &m); err != nil {
		return "", err
	}
	found, err := m.table()
	if err != nil {
		return "", err
	}
	c, err := campaign(dir)
	if err != nil {
		return "", err
	}
	met, err := s.matrices(c)
	if err != nil {
		return "", err
	}
	overlaps, err := s.overlaps(c)
	if err != nil {
		return "", err
	}
	return strings.Join([]string{
		intro, s.figures(), c.real(), matrixText, met, overlapText, overlaps, m.text(), found, recordText, record(), replayText,
	}, "\n"), nil
}

func (s Source) String() string {
	return fmt.Sprintf("commit `%s`, %s", s.Commit[:min(len(s.Commit), 12)], s.Date)
}

// A grid is a table of the page.
type grid struct{ text strings.Builder }

func (g *grid) row(cells ...string) { fmt.Fprintf(&g.text, "| %s |\n", strings.Join(cells, " | ")) }

func (g *grid) head(cells ...string) {
	g.row(cells...)
	fmt.Fprintf(&g.text, "|%s\n", strings.Repeat("---|", len(cells)))
}

// number has a comma between thousands.
func number(n int) string {
	text := fmt.Sprint(n)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// tenths has a digit after the point: half an hour is not none.
func tenths(n float64) string { return fmt.Sprintf("%.1f", n) }

// Add adds what was played otherwise.
func (p *Played) Add(o *Played) {
	p.Seeds, p.Wrong, p.Simulated, p.Scripts = p.Seeds+o.Seeds, p.Wrong+o.Wrong, p.Simulated+o.Simulated, p.Scripts+o.Scripts
	p.Holds, p.Told, p.Excused, p.Lost, p.Late = p.Holds+o.Holds, p.Told+o.Told, p.Excused+o.Excused, p.Lost+o.Lost, p.Late+o.Late
	for what, n := range o.Faults {
		p.Faults[what] += n
	}
	for who, n := range o.By {
		p.By[who] += n
	}
	for what, d := range o.Overlaps {
		p.Overlaps[what] = max(p.Overlaps[what], d)
	}
}

func newPlayed(typ, topology string) *Played {
	return &Played{Type: typ, Topology: topology, By: map[string]int{}, Faults: map[string]int{}, Overlaps: map[string]time.Duration{}}
}

// Of returns what was played of a type on a topology, to be added to.
func (s *Simulation) Of(typ, topology string) *Played {
	at := slices.IndexFunc(s.Plays, func(p *Played) bool { return p.Type == typ && p.Topology == topology })
	if at < 0 {
		s.Plays = append(s.Plays, newPlayed(typ, topology))
		slices.SortFunc(s.Plays, func(a, b *Played) int {
			return cmp.Or(cmp.Compare(a.Topology, b.Topology), cmp.Compare(a.Type, b.Type))
		})
		return s.Of(typ, topology)
	}
	return s.Plays[at]
}

// String says it in a line.
func (p *Played) String() string {
	return fmt.Sprintf("%-12s %5d seeds, %6d faults, %8d scripts, %7d holds, %6d told of a loss, %6d that a loss of data may have taken",
		p.Type, p.Seeds, p.struck(), p.Scripts, p.Holds, p.Told, p.Excused)
}

func (p *Played) struck() (n int) {
	for _, times := range p.Faults {
		n += times
	}
	return n
}

// sum returns all plays as one.
func (s *Simulation) sum() *Played {
	all := newPlayed("all", "")
	for _, p := range s.Plays {
		all.Add(p)
	}
	return all
}

func (s *Simulation) figures() string {
	var g grid
	all := s.sum()
	fmt.Fprintf(&g.text, "Played at random: %s. It took %s simulated hours. Of %s seeds %s went wrong.\n\n",
		s.Source, tenths(all.Simulated.Hours()), number(all.Seeds), number(all.Wrong))
	g.head("type", "seeds", "simulated hours", "faults", "scripts", "requests and replies lost", "late requests", "holds", "told of a loss", "excused by lost data", "seeds that went wrong")
	for _, p := range append(slices.Clone(s.Plays), all) {
		g.row(p.Type, number(p.Seeds), tenths(p.Simulated.Hours()), number(p.struck()), number(p.Scripts), number(p.Lost), number(p.Late),
			number(p.Holds), number(p.Told), number(p.Excused), number(p.Wrong))
	}
	return g.text.String()
}

// matrix returns how often each of these faults struck each of these types, and
// then each other fault that did.
func matrix(plays []*Played, types []string, faults []trouble) string {
	var g grid
	g.head(append([]string{"fault"}, types...)...)
	struck := map[string]map[string]int{}
	for _, p := range plays {
		for _, what := range slices.Sorted(maps.Keys(p.Faults)) {
			if struck[what] == nil {
				struck[what] = map[string]int{}
			}
			if !slices.ContainsFunc(faults, func(f trouble) bool { return f.name == what }) {
				faults = append(faults, trouble{name: what, what: what})
			}
			struck[what][p.Type] += p.Faults[what]
		}
	}
	for _, f := range faults {
		row := []string{f.what}
		for _, typ := range types {
			row = append(row, empty(struck[f.name][typ]))
		}
		g.row(row...)
	}
	return g.text.String()
}

// on returns the types that the simulation plays on a topology, and the faults
// that may strike them.
func on(topology string) (types []string, faults []trouble) {
	may := map[string]bool{}
	for _, typ := range sim.Types() {
		if sim.Topology(typ) != topology {
			continue
		}
		types = append(types, typ)
		for seed := range uint64(2) { // one loses data
			if plan, err := sim.Standard(seed, typ); err == nil {
				for _, what := range plan.Faults {
					may[what] = true
				}
			}
		}
	}
	return types, slices.DeleteFunc(slices.Clone(troubles), func(t trouble) bool { return !may[t.name] })
}

// matrices returns what met what, in fake time and on real servers, by topology.
// Real processes have faults of their own, which have names that say what they
// are.
func (s *Simulation) matrices(c *Simulation) (string, error) {
	var parts []string
	add := func(where, topology string, played *Simulation, types []string, faults []trouble) {
		text := "Nothing was played here: every cell is empty.\n"
		if plays := slices.DeleteFunc(slices.Clone(played.Plays), func(p *Played) bool { return p.Topology != topology }); len(plays) > 0 {
			text = matrix(plays, types, faults)
		}
		parts = append(parts, fmt.Sprintf("### %s%s, %s\n\n%s", strings.ToUpper(topology[:1]), topology[1:], where, text))
	}
	for _, p := range s.Plays {
		if want := sim.Topology(p.Type); p.Topology != want {
			return "", fmt.Errorf("%s was played on %q, and not on %q", p.Type, p.Topology, want)
		}
		if err := unknown(maps.Keys(p.Faults), false); err != nil {
			return "", err
		}
	}
	for _, topology := range topologies {
		types, faults := on(topology)
		add("in fake time", topology, s, types, faults)
	}
	for _, p := range c.Plays {
		if !slices.Contains(realTopologies, p.Topology) || !slices.Contains(sim.Held(), p.Type) {
			return "", fmt.Errorf("the page has no place for real processes that play %s on %q", p.Type, p.Topology)
		}
	}
	for _, topology := range realTopologies {
		add("with real processes", topology, c, sim.Held(), nil)
	}
	return strings.Join(parts, "\n"), nil
}

// empty shows a cell in which nothing was played.
func empty(n int) string {
	if n == 0 {
		return "–"
	}
	return number(n)
}

// real returns the figures of plays with real processes.
func (s *Simulation) real() string {
	if len(s.Plays) == 0 {
		return noCampaign
	}
	var g grid
	var who []string // has had something
	by := map[string]*Played{}
	for _, p := range s.Plays {
		if by[p.Topology] == nil {
			by[p.Topology] = newPlayed("", p.Topology)
		}
		by[p.Topology].Add(p)
		for name := range p.By {
			if !slices.Contains(who, name) {
				who = append(who, name)
			}
		}
	}
	slices.Sort(who)
	fmt.Fprintf(&g.text, campaignText, s.Source)
	heads := []string{"servers", "plays", "minutes", "faults", "holds"}
	for _, name := range who {
		heads = append(heads, "of "+name)
	}
	g.head(append(heads, "plays that went wrong")...)
	for _, topology := range slices.Sorted(maps.Keys(by)) {
		p := by[topology]
		row := []string{topology, number(p.Seeds), tenths(p.Simulated.Minutes()), number(p.struck()), number(p.Holds)}
		for _, name := range who {
			row = append(row, empty(p.By[name]))
		}
		g.row(append(row, number(p.Wrong))...)
	}
	return g.text.String()
}

// overlaps returns the longest overlaps, in fake time and with real processes.
func (s *Simulation) overlaps(c *Simulation) (string, error) {
	var g grid
	fake, lived := s.sum(), c.sum()
	for _, p := range []*Played{fake, lived} {
		if err := unknown(maps.Keys(p.Overlaps), true); err != nil {
			return "", err
		}
	}
	longest := func(p *Played, what string) string {
		d, played := p.Overlaps[what]
		switch {
		case d > 0:
			return fmt.Sprintf("%.2f s", d.Seconds())
		case played:
			return "none"
		}
		return "–"
	}
	g.head("what lost the data", "how often, in fake time", "longest overlap", "with real processes", "when the holder is told, as documented")
	for _, t := range troubles {
		if t.told != "" {
			g.row(t.what, empty(fake.Faults[t.name]), longest(fake, t.name), longest(lived, t.name), t.told)
		}
	}
	return g.text.String(), nil
}

// found returns how many seeds it took to find each of those that were found,
// sorted.
func (m *Mutants) found() (all []uint64) {
	for _, x := range m.Mutants {
		if x.Seeds > 0 {
			all = append(all, x.Seeds)
		}
	}
	slices.Sort(all)
	return all
}

func (m *Mutants) text() string {
	all := m.found()
	text := fmt.Sprintf(mutantsText, m.Source, len(all), all[len(all)/2])
	if left := len(m.Mutants) - len(all); left > 0 {
		text += fmt.Sprintf(leftText, left)
	}
	return text
}

func (m *Mutants) table() (string, error) {
	if len(m.found()) == 0 {
		return "", fmt.Errorf("%s has no mutant that was found", MutantsFile)
	}
	by := map[string][]Mutant{}
	for _, x := range m.Mutants {
		by[x.Rule] = append(by[x.Rule], x)
	}
	var g grid
	g.head("rule", "mutant", "type", "seeds until it was found", "it may take")
	for _, r := range rules {
		name := fmt.Sprintf("[%s](guarantees.md)", r.name)
		if r.anchor != "" {
			name = fmt.Sprintf("[%s](guarantees.md#%s)", r.name, r.anchor)
		}
		for _, x := range by[r.name] {
			seeds := fmt.Sprint(x.Seeds)
			if x.Seeds == 0 {
				seeds = "not looked for yet"
			}
			g.row(name, x.Name, x.Type, seeds, fmt.Sprint(x.Most))
		}
		if by[r.name] == nil {
			g.row(name, "none", "–", "–", "–")
		}
		delete(by, r.name)
	}
	for _, name := range slices.Sorted(maps.Keys(by)) {
		return "", fmt.Errorf("the page does not know the rule %q", name)
	}
	return g.text.String(), nil
}

func record() string {
	var g grid
	g.head("what was wrong", "the test that replays it")
	for _, f := range trackRecord {
		g.row(f.what, fmt.Sprintf("[`%s`](../%s)", f.test, f.file))
	}
	return g.text.String()
}
