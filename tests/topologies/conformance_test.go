package topologies

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/tests/internal/drivers"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

var update = flag.Bool("update", false, "write the table into docs/guarantees.md")

const (
	page  = "../../docs/guarantees.md"
	begin = "<!-- what works where: make check prints this table, and fails if it is another -->\n"
	end   = "<!-- end -->\n"
)

// TestEveryTypeWorksInEveryTopology prints what works where. The docs must say
// just that.
func TestEveryTypeWorksInEveryTopology(t *testing.T) {
	locktest.Long(t)
	t.Parallel()
	var mu sync.Mutex
	failed := map[[2]string][]string{} // by type and topology: where
	t.Run("all", func(t *testing.T) {
		for _, top := range topologies {
			for _, kind := range testserver.EveryKind() {
				t.Run(top.name+"/"+string(kind), func(t *testing.T) {
					t.Parallel()
					place := top.start(t, kind)
					for _, adapter := range drivers.Adapters {
						t.Run(adapter.Name, func(t *testing.T) {
							a := client(t, adapter.Open(t, place), redlatch.Config{ServerName: "a"})
							b := client(t, adapter.Open(t, place), redlatch.Config{ServerName: "b"})
							for _, typ := range types {
								ok := t.Run(typ.name, func(t *testing.T) {
									ctx, cancel := context.WithTimeout(t.Context(), generous)
									defer cancel()
									typ.test(&pair{T: t, ctx: ctx, a: a, b: b, name: adapter.Name + ":" + typ.name})
								})
								if !ok {
									mu.Lock()
									key := [2]string{typ.name, top.name}
									failed[key] = append(failed[key], string(kind)+" by "+adapter.Name)
									mu.Unlock()
								}
							}
						})
					}
				})
			}
		}
	})
	got := table(failed)
	t.Log("\n" + got)
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	shown, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the table", page)
	}
	switch {
	case shown == got:
	case *update:
		if err := os.WriteFile(page, []byte(before+begin+got+end+after), 0o644); err != nil { //nolint:gosec // as it was
			t.Fatal(err)
		}
	default:
		t.Errorf("%s shows another table; -update writes it", page)
	}
}

func table(failed map[[2]string][]string) string {
	var b strings.Builder
	var names []string
	for _, adapter := range drivers.Adapters {
		names = append(names, adapter.Package)
	}
	fmt.Fprintf(&b, "The adapters: %s.\n\n| |", strings.Join(names, ", "))
	for _, top := range topologies {
		fmt.Fprintf(&b, " %s |", top.name)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(topologies)) + "\n")
	for _, typ := range types {
		fmt.Fprintf(&b, "| %s |", typ.name)
		for _, top := range topologies {
			if where := failed[[2]string{typ.name, top.name}]; len(where) > 0 {
				slices.Sort(where) // places are tried at the same time
				fmt.Fprintf(&b, " not on %s |", strings.Join(where, ", "))
			} else {
				b.WriteString(" yes |")
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}
