package results

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
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
	{"the gate of a process", "between-processes"},
	{"turns", "turns"},
	{"what is given in a fair lock's queue", "fair-locks"},
	{"readers and writers", "readers-and-writers"},
	{"late requests", "exactly-once"},
	{"requests that count", "exactly-once"},
	{"detached holds", "exactly-once"},
	{"forced releases", "exactly-once"},
	{"tokens", "fencing"},
	{"several locks", "multi-locks"},
	{"red locks", "red-locks"},
	{"replicas that confirm", "replicas"},
	{"permits", "permits-with-leases"},
	{"barriers", "latches-and-barriers"},
	{"elections", "elections"},
	{"rates", "rate-limiters"},
}

type loss struct{ name, what, told string }

// losses are the ways to lose data, with what docs/guarantees.md says of when the holder learns of it.
var losses = []loss{
	{"wipe", "a restart without data", "within the time to reconnect"},
	{"older", "a restart with older data", "within the time to reconnect"},
	{"failover", "a failover to a replica that lags", "within the time to reconnect"},
	{"split", "a failover after which the old primary still answers", "within the time to reconnect to the new one"},
	{"evict", "an eviction", "within a third of the lease, or when the trust window of a `Lease` ends"},
	{"ahead", "the server's clock is set ahead", "at the next renewal, or when the trust window of a `Lease` ends"},
	{"force", "a forced release", "before, unless the holder does not answer within a second"},
}

// faults are those that the simulation makes, in the order of the page, as it says them.
var faults = []struct{ name, what string }{
	{"cut", "a link is cut, one way or both"},
	{"stall", "a process stands still, as others see it"},
	{"break", "connections break"},
	{"kill", "a process is killed"},
	{"shut down", "a process shuts down in order"},
	{"restart", "the server restarts with its data"},
	{"pause", "`CLIENT PAUSE`"},
	{"back", "the server's clock is set back"},
	{"full", "`OOM`"},
	{"readonly disk", "`MISCONF`"},
	{"loading", "`LOADING`"},
	{"busy", "`BUSY`"},
	{"replica", "`READONLY`"},
	{"no script", "`NOSCRIPT`"},
	{"wipe", "the server restarts without data"},
	{"older", "it restarts with older data"},
	{"failover", "a replica that lags takes its place"},
	{"split", "the same, and the old primary still answers"},
	{"evict", "a key is evicted"},
	{"ahead", "the server's clock is set ahead"},
	{"force", "somebody forces a lock"},
}

// OneServer is the topology of a play with one primary at a time.
const OneServer = "one server"

// topologies are those that locks are used on, and realTopologies what a campaign with real servers calls them. The page shows those,
// too, on which nothing was played.
var (
	topologies     = []string{OneServer, "Cluster", "independent servers"}
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
	return strings.Join([]string{
		intro, s.figures(), c.real(), matrixText, s.matrices(c), overlapText, s.overlaps(c), m.text(), found, recordText, record(), replayText,
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

// Add adds what was played otherwise.
func (p *Played) Add(o *Played) {
	p.Seeds, p.Wrong, p.Simulated, p.Scripts = p.Seeds+o.Seeds, p.Wrong+o.Wrong, p.Simulated+o.Simulated, p.Scripts+o.Scripts
	p.Holds, p.Told, p.Excused, p.Lost, p.Late = p.Holds+o.Holds, p.Told+o.Told, p.Excused+o.Excused, p.Lost+o.Lost, p.Late+o.Late
	for what, n := range o.Faults {
		p.Faults[what] += n
	}
	for what, d := range o.Overlaps {
		p.Overlaps[what] = max(p.Overlaps[what], d)
	}
}

func newPlayed(typ, topology string) *Played {
	return &Played{Type: typ, Topology: topology, Faults: map[string]int{}, Overlaps: map[string]time.Duration{}}
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
		s.Source, number(int(all.Simulated.Hours())), number(all.Seeds), number(all.Wrong))
	g.head("type", "seeds", "simulated hours", "faults", "scripts", "requests and replies lost", "late requests", "holds", "told of a loss", "excused by lost data", "seeds that went wrong")
	for _, p := range append(slices.Clone(s.Plays), all) {
		g.row(p.Type, number(p.Seeds), fmt.Sprintf("%.1f", p.Simulated.Hours()), number(p.struck()), number(p.Scripts), number(p.Lost), number(p.Late),
			number(p.Holds), number(p.Told), number(p.Excused), number(p.Wrong))
	}
	return g.text.String()
}

// matrix returns how often each fault struck each of these types.
func matrix(plays []*Played, types []string) string {
	var g grid
	g.head(append([]string{"fault"}, types...)...)
	struck := map[string]map[string]int{}
	names := map[string]string{}
	var order []string // of faults: those that the page knows, and then the others
	for _, f := range faults {
		order, names[f.name] = append(order, f.name), f.what
	}
	for _, p := range plays {
		for _, what := range slices.Sorted(maps.Keys(p.Faults)) {
			if struck[what] == nil {
				struck[what] = map[string]int{}
			}
			if !slices.Contains(order, what) {
				order = append(order, what)
			}
			struck[what][p.Type] += p.Faults[what]
		}
	}
	for _, what := range order {
		if struck[what] == nil && plays[0].Real {
			continue // real processes have faults of their own
		}
		row := []string{cmp.Or(names[what], what)}
		for _, typ := range types {
			row = append(row, empty(struck[what][typ]))
		}
		g.row(row...)
	}
	return g.text.String()
}

// matrices returns what met what, in fake time and on real servers, by topology.
func (s *Simulation) matrices(c *Simulation) string {
	var types []string
	for _, p := range slices.Concat(s.Plays, c.Plays) {
		if !slices.Contains(types, p.Type) {
			types = append(types, p.Type)
		}
	}
	var parts []string
	for _, all := range []struct {
		where string
		plays []*Played
		on    []string
	}{{"in fake time", s.Plays, topologies}, {"with real processes", c.Plays, realTopologies}} {
		on := all.on
		for _, p := range all.plays {
			if !slices.Contains(on, p.Topology) {
				on = append(slices.Clone(on), p.Topology)
			}
		}
		for _, topology := range on {
			text := "Nothing was played here: every cell is empty.\n"
			if plays := slices.DeleteFunc(slices.Clone(all.plays), func(p *Played) bool { return p.Topology != topology }); len(plays) > 0 {
				text = matrix(plays, types)
			}
			parts = append(parts, fmt.Sprintf("### %s%s, %s\n\n%s", strings.ToUpper(topology[:1]), topology[1:], all.where, text))
		}
	}
	return strings.Join(parts, "\n")
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
	g.text.WriteString(campaignText + "\n")
	g.head("servers", "plays", "minutes", "faults", "holds")
	by := map[string]*Played{}
	for _, p := range s.Plays {
		if by[p.Topology] == nil {
			by[p.Topology] = newPlayed("", p.Topology)
		}
		by[p.Topology].Add(p)
	}
	for _, topology := range slices.Sorted(maps.Keys(by)) {
		p := by[topology]
		g.row(topology, number(p.Seeds), number(int(p.Simulated.Minutes())), number(p.struck()), number(p.Holds))
	}
	return g.text.String()
}

// overlaps returns the longest overlaps, in fake time and with real processes.
func (s *Simulation) overlaps(c *Simulation) string {
	var g grid
	fake, lived := s.sum(), c.sum()
	longest := func(p *Played, what string) string {
		d, played := p.Overlaps[what]
		switch {
		case d > 0:
			return fmt.Sprintf("%.2f s", d.Seconds())
		case played || p.Faults[what] > 0:
			return "none"
		}
		return "–"
	}
	g.head("what lost the data", "how often, in fake time", "longest overlap", "with real processes", "when the holder is told, as documented")
	all := slices.Clone(losses)
	for _, what := range slices.Sorted(maps.Keys(lived.Overlaps)) {
		if !slices.ContainsFunc(all, func(l loss) bool { return l.name == what }) {
			all = append(all, loss{what, what, "within the time to reconnect"})
		}
	}
	for _, l := range all {
		g.row(l.what, empty(fake.Faults[l.name]), longest(fake, l.name), longest(lived, l.name), l.told)
	}
	return g.text.String()
}

// median of the seeds that it took to find a mutant.
func (m *Mutants) median() uint64 {
	var all []uint64
	for _, x := range m.Mutants {
		all = append(all, x.Seeds)
	}
	slices.Sort(all)
	return all[len(all)/2]
}

func (m *Mutants) text() string {
	return fmt.Sprintf(mutantsText, m.Source, len(m.Mutants), m.median())
}

func (m *Mutants) table() (string, error) {
	if len(m.Mutants) == 0 {
		return "", fmt.Errorf("%s has no mutants", MutantsFile)
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
			g.row(name, x.Name, x.Type, fmt.Sprint(x.Seeds), fmt.Sprint(x.Most))
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
