package search

import (
	"fmt"
	"slices"
	"strings"
)

// tell tells how a bad end came about.
func (x *explorer) tell(at int32, bad string) string {
	var path []int32
	for i := at; i > 0; i = x.states[i].from {
		path = append(path, i)
	}
	slices.Reverse(path)
	var b strings.Builder
	fmt.Fprintf(&b, "%s:\n", x.name)
	for n, i := range path {
		v := &x.states[i]
		before := &x.states[v.from].state
		fmt.Fprintf(&b, "%3d. %s\n", n+1, x.happened(before, v.step))
		for j := range v.minds {
			if m := v.minds[j]; m != before.minds[j] {
				fmt.Fprintf(&b, "       %s %s\n", x.minds[j], m)
			}
		}
		if v.store != before.store && v.step != passes {
			fmt.Fprintf(&b, "       stored: %s\n", v.store)
		}
	}
	fmt.Fprintf(&b, "  => %s\n", bad)
	return b.String()
}

// happened tells of a step from a state.
func (x *explorer) happened(s *state, by step) string {
	switch {
	case by == passes:
		return fmt.Sprintf("it is tick %d; stored: %s", s.now+1, x.after(s.store, x.unit))
	case by < runsLost:
		return x.asks[by-1].name + map[bool]string{true: ": sent"}[x.asks[by-1].script != ""]
	}
	i, heard := int(by-runsLost), false
	if by >= runsHeard {
		i, heard = int(by-runsHeard), true
	}
	f := s.flight[i]
	return x.ran(s, i, x.run(x.callOf(&x.asks[f.ask], f.sent), s.store, s.now, x.whoListens(s), healthy), heard)
}

// ran tells of an execution.
func (x *explorer) ran(s *state, i int, r *result, heard bool) string {
	f := s.flight[i]
	a := &x.asks[f.ask]
	var b strings.Builder
	b.WriteString(a.name + ": executed")
	if f.runs < a.runs {
		b.WriteString(" again")
	}
	fmt.Fprintf(&b, ", answers %v", text(r.reply))
	for _, m := range r.told {
		fmt.Fprintf(&b, ", publishes %s on %s", m.text, m.channel)
	}
	if !heard {
		b.WriteString("; nobody hears it")
	}
	return b.String()
}

func text(reply any) string {
	if reply == nil {
		return "nil"
	}
	return fmt.Sprint(reply)
}

func (m mind) String() string {
	t := [...]string{"knows of nothing", "waits for an answer", "was refused", "has it", "is done with it"}[m.phase]
	if m.what > 0 {
		t += fmt.Sprintf(" (%b)", m.what)
	}
	if m.until > 0 {
		t += fmt.Sprintf(", trusts until tick %d", m.until)
	}
	if m.token > 0 {
		t += fmt.Sprintf(", token %d", m.token)
	}
	return t
}
