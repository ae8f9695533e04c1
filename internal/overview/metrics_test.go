package overview

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/promtext"
)

// pageOf is what Prometheus reads, without what explains it.
func pageOf(m *Metrics, hs *Histories, listing *Listing) string {
	hs.Add(listing)
	var lines []string
	for line := range strings.Lines(promtext.Page(m.Families(listing, 1500*time.Millisecond, hs), "")) {
		if !strings.HasPrefix(line, "#") {
			lines = append(lines, strings.TrimPrefix(line, "redlatch_server_"))
		}
	}
	return strings.Join(lines, "")
}

func hasLines(t *testing.T, page string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if strings.Count("\n"+page, "\n"+line+"\n") != 1 {
			t.Errorf("%q is not there once in\n%s", line, page)
		}
	}
}

func lostBy(owner, reason string, ago time.Duration) Claim {
	ms := ago.Milliseconds()
	return Claim{Client: "u", Owner: owner, Reason: reason, Told: Told{For: &ms}}
}

// The numbers of a prefix are those of all its names, and nothing is counted
// twice.
func TestMetricsAddUpByPrefix(t *testing.T) {
	t.Parallel()
	waited, others := int64(2500), 3
	listing := &Listing{At: at(0), Asked: true, Answered: 4, Silent: 1, Deadlocks: make([][]Wait, 2), Locks: []Lock{
		{Name: "gate", Kind: "barrier", Exists: true, Queue: []Waiter{{Owner: "a"}, {Owner: "b"}}},
		{Name: "jobs:1", Kind: "expirable semaphore", Exists: true, Holders: make([]Holder, 5)},
		{Name: "orders:1", Kind: "read-write lock", Exists: true, Holders: make([]Holder, 2), Who: Who{Waiting: []Claim{{Owner: "c", Told: Told{For: &waited}}}, Others: &others}},
		heldBy("orders:2", "one"),
		{Name: "orders:3", Kind: "lock", Who: Who{Lost: []Claim{lostBy("r", "gone", time.Minute), lostBy("r", "gone", time.Minute), lostBy("s", "expired", time.Second)}}},
	}}
	listing.Locks[3].Exists = true
	page := pageOf(&Metrics{}, &Histories{Since: at(-30)}, listing)
	hasLines(t, page, "up 1", "look_seconds 1.5", "complete 1", `clients{answered="true"} 4`, `clients{answered="false"} 1`, "possible_deadlocks 2",
		`objects{kind="barrier"} 1`, `objects{kind="lock"} 1`, `objects{kind="latch"} 0`,
		`held{prefix=""} 0`, `held{prefix="orders"} 3`, `permits{prefix="jobs"} 5`, `permits{prefix="orders"} 0`,
		`waiters{prefix=""} 2`, `waiters{prefix="orders"} 4`, `longest_wait_seconds{prefix="orders"} 2.5`, `oldest_hold_seconds{prefix="orders"} 1.5`,
		`lost_within_an_hour{prefix="orders"} 2`, `lost_total{reason="expired"} 1`, `lost_total{reason="gone"} 0`) // before it began to count

	listing.Asked, listing.Silent, listing.Problem = false, -1, "refused"
	page = pageOf(&Metrics{}, &Histories{}, listing)
	hasLines(t, page, "up 1", "complete 0", `held{prefix="orders"} 3`)
	for _, unknown := range []string{"clients", "waiters", "seconds{", "within_an_hour", "deadlocks"} {
		if strings.Contains(page, unknown) {
			t.Errorf("it says something of %s, and nobody was asked:\n%s", unknown, page)
		}
	}
	page = pageOf(&Metrics{Prefixes: []string{"orders:", "orders:2", "stock\xff"}}, &Histories{}, listing)
	hasLines(t, page, `held{prefix="orders:"} 2`, `held{prefix="orders:2"} 1`, `held{prefix="other"} 0`, `permits{prefix="other"} 5`, `held{prefix="stock`+"\uFFFD"+`"} 0`)
}

// Whatever names there are, there are only so many time series, no two with the
// same labels: Prometheus refuses such a page.
func TestMetricsAreBounded(t *testing.T) {
	t.Parallel()
	var m Metrics
	var hs Histories
	all := &Listing{At: at(0), Asked: true}
	for i := range 3 * mostGroups {
		all.Locks = append(all.Locks, heldBy(fmt.Sprintf("p%03d:x", i), "one"))
	}
	page := pageOf(&m, &hs, all)
	hasLines(t, page, `held{prefix="p000"} 1`, `held{prefix="p099"} 1`, `held{prefix="other"} 200`)
	if n := strings.Count(page, "\nheld{"); n != mostGroups+1 {
		t.Errorf("%d series", n)
	}
	// All keep their places, also when they are not there any more.
	some := &Listing{At: at(5), Asked: true, Locks: append(all.Locks[10:mostGroups:mostGroups], heldBy("a:1", "one"), heldBy("z:1", "one"))}
	page = pageOf(&m, &hs, some)
	hasLines(t, page, `held{prefix="other"} 2`, `held{prefix="p099"} 1`, `held{prefix="p009"} 0`)
	if n := strings.Count(page, "\nheld{"); n != mostGroups+1 {
		t.Errorf("%d series", n)
	}
	hostile := &Listing{At: at(10), Asked: true}
	for _, name := range []string{"a\"}\n:1", "a\"}\x00:2", "b\xff:1", "b\xfe:2", strings.Repeat("long", 100) + ":", "other:1", ":"} {
		hostile.Locks = append(hostile.Locks, heldBy(name, "one"))
	}
	page = pageOf(&Metrics{}, &hs, hostile)
	hasLines(t, page, `held{prefix="a\"}`+"\uFFFD"+`"} 2`, `held{prefix="b`+"\uFFFD"+`"} 2`, `held{prefix="other"} 2`, `held{prefix=""} 1`)
}

// Prometheus keeps each series that it has ever read: as many as names that come
// and go would have filled it.
func TestPrefixesThatComeAndGoAreBounded(t *testing.T) {
	t.Parallel()
	var m Metrics
	var hs Histories
	ever := map[string]bool{}
	for look := range 50 {
		listing := &Listing{At: at(look), Asked: true}
		for i := range mostGroups {
			listing.Locks = append(listing.Locks, heldBy(fmt.Sprintf("%d-%d:x", look, i), "one"))
		}
		for line := range strings.Lines(pageOf(&m, &hs, listing)) {
			if series, _, _ := strings.Cut(line, " "); strings.HasPrefix(line, "held{") {
				ever[series] = true
			}
		}
	}
	if len(ever) != mostGroups+1 { // and those that count as other
		t.Errorf("%d series", len(ever))
	}
}

// A counter that falls, or counts again what was counted, raises an alert for
// nothing.
func TestLossesAreCountedOnce(t *testing.T) {
	t.Parallel()
	hs := Histories{Since: at(0)}
	lose := func(second, from, to int, reason string) {
		listing := &Listing{At: at(second), Asked: true}
		for i := range mostNames + 10 { // more than have histories
			listing.Locks = append(listing.Locks, Lock{Name: fmt.Sprint("n", i)})
		}
		for i := from; i < to; i++ {
			listing.Locks[mostNames+5].Lost = append(listing.Locks[mostNames+5].Lost, lostBy(fmt.Sprint(i), reason, 0))
		}
		hs.Add(listing)
	}
	lose(1, 0, 10, "gone")
	lose(2, 0, 12, "gone")
	lose(3, 12, 13, "\"} made up")
	if hs.lostBy["gone"] != 12 || hs.lostBy[otherReason] != 1 || len(hs.lostBy) != 2 {
		t.Errorf("%v", hs.lostBy)
	}
	lose(4, 13, mostLosses+1000, "gone")
	lose(5, 13, mostLosses+1000, "gone")
	if n := hs.lostBy["gone"]; n != mostLosses-1 || len(hs.lost) != mostLosses {
		t.Errorf("%d counted, %d remembered", n, len(hs.lost))
	}
	lose(4+int(lossTold.Seconds()), mostLosses, mostLosses+3, "expired")
	if n := hs.lostBy["expired"]; n != 3 || len(hs.lost) > mostLosses {
		t.Errorf("%d counted, %d remembered", n, len(hs.lost))
	}
}
