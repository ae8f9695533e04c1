package topologies

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/acl"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/internal/wire"
	"github.com/redlatch/redlatch/tests/internal/drivers"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

// A costRow is a row of the table in docs/security.md of what a missing right
// costs.
type costRow struct{ right, locks string }

// costs reads the table that begins so.
func costs(t *testing.T, without string) (rows []costRow) {
	t.Helper()
	text, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(text), "| "+without+" | locks |")
	if !ok {
		t.Fatal("docs/security.md has no table of what a missing right costs")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	for _, row := range strings.Split(table, "\n")[2:] {
		cells := strings.Split(strings.ReplaceAll(row, `\|`, "\x00"), " | ")
		for _, right := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[0], -1) {
			rows = append(rows, costRow{strings.ReplaceAll(right[1], "\x00", "|"), cells[1]})
		}
	}
	if len(rows) < 10 {
		t.Fatalf("the table has %d rights", len(rows))
	}
	return rows
}

// What a managed server or a proxy takes away costs what docs/security.md says,
// whether the user may not use a command, or the server does not know it; and what
// still works works at once, or after a poll.
func TestWithoutARight(t *testing.T) {
	locktest.Long(t)
	t.Parallel()
	for _, row := range costs(t, "without") {
		t.Run(row.right, func(t *testing.T) {
			t.Parallel()
			s := testserver.Start(t, testserver.Valkey)
			p := hire(drivers.Single(s.Addr()), acl.Rule{}, s)
			s.MustDo("ACL", "SETUSER", appUser, "-"+row.right)
			if row.right == "client|setname" { // which go-redis insists on, if there is a name
				p.Goredis.ClientName = ""
			}
			for _, adapter := range drivers.Adapters {
				t.Run(adapter.Name, func(t *testing.T) { without(t, row, adapter, p, "without") })
			}
		})
		if command, _, sub := strings.Cut(row.right, "|"); !sub && command != "ping" && command != "select" { // which tests need themselves
			t.Run("unknown "+command, func(t *testing.T) {
				t.Parallel()
				s := testserver.Start(t, testserver.Valkey, append(testserver.Open, "--rename-command", command, "")...)
				for _, adapter := range drivers.Adapters {
					t.Run(adapter.Name, func(t *testing.T) { without(t, row, adapter, drivers.Single(s.Addr()), "without") })
				}
			})
		}
	}
}

func without(t *testing.T, row costRow, adapter drivers.Adapter, p drivers.Place, name string) {
	t.Helper()
	a, b := client(t, adapter.Open(t, p), redlatch.Config{}), client(t, adapter.Open(t, p), redlatch.Config{})
	command, _, _ := strings.Cut(row.right, "|")
	refused := func(what string, err error) {
		t.Helper()
		text := strings.ToLower(fmt.Sprint(err))
		if err == nil || redlatch.IsRetryable(err) || !strings.Contains(text, command) && !strings.Contains(text, "unknown command") {
			t.Errorf("%s: %v, want a refusal that names %s, and is not worth another try", what, err, command)
		}
	}
	h, err := a.Lock(name).Acquire(t.Context())
	if row.locks == "fail" {
		refused("acquire", err)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan error, 1)
	go func() {
		_, err := b.Lock(name).TryDo(context.Background(), time.Minute, func(context.Context) error { return nil })
		got <- err
	}()
	err = h.Release(t.Context())
	if row.locks == "are freed, and Release fails" {
		refused("release", err)
	} else if err != nil {
		t.Errorf("release: %v", err)
	}
	if err := <-got; err != nil && row.locks != "are freed, and Release fails" {
		t.Errorf("the next one: %v", err)
	}
	err = a.FairLock(name+"queued").Do(t.Context(), func(context.Context) error { return nil })
	switch {
	case row.right == "time":
		refused("a fair lock", err)
	case err != nil:
		t.Errorf("a fair lock: %v", err)
	}
	acks := client(t, adapter.Open(t, p), redlatch.Config{Acks: redlatch.AckAny})
	if err := acks.Lock(name+"acknowledged").Do(t.Context(), func(context.Context) error { return nil }); err != nil {
		t.Errorf("with AckAny: %v", err)
	}
	if row.right == "wait" {
		acks := client(t, adapter.Open(t, p), redlatch.Config{Acks: redlatch.AckRequired, AckReplicas: 1})
		if _, err := acks.Lock(name+"acknowledged").TryAcquire(t.Context(), 0); err == nil || !strings.Contains(err.Error(), "does not know WAIT, or forbids it") {
			t.Errorf("with Acks 1: %v", err)
		}
	}
}

// The same in a cluster: one for all rights, which are taken away one after the
// other.
func TestWithoutARightInACluster(t *testing.T) {
	locktest.Long(t)
	t.Parallel()
	c := testserver.StartCluster(t, testserver.Valkey)
	for _, row := range costs(t, "without, in a cluster") {
		t.Run(row.right, func(t *testing.T) {
			p := hire(drivers.Cluster(c), acl.Rule{}, c.Nodes...)
			for _, n := range c.Nodes {
				n.MustDo("ACL", "SETUSER", appUser, "-"+row.right)
			}
			for _, adapter := range drivers.Adapters {
				t.Run(adapter.Name, func(t *testing.T) {
					mine := row
					if who, fails := strings.CutPrefix(row.locks, "fail with "); fails {
						mine.locks = "work"
						if strings.Contains(strings.ReplaceAll(who, "-", ""), adapter.Name) {
							mine.locks = "fail"
						}
					}
					name := row.right + adapter.Name
					before := waits(c)
					without(t, mine, adapter, p, name)
					if uncounted := row.right == "role" || row.right == "wait"; mine.locks == "work" && uncounted != (waits(c) == before) {
						t.Errorf("%d acquisitions were acknowledged by a replica", waits(c)-before)
					}
					if row.right == "asking" {
						withoutAsking(t, c, client(t, adapter.Open(t, p), redlatch.Config{OutageTimeout: 3 * time.Second}), name)
					}
				})
			}
		})
	}
}

// withoutAsking wants a lock in a slot that moves, at a moment when all of it is
// at the new place.
func withoutAsking(t *testing.T, c *testserver.Cluster, client *redlatch.Client, name string) {
	t.Helper()
	name = "moves" + name
	from := c.PrimaryOf(name)
	to := c.PrimaryOf("a")
	for i := 0; to == from; i++ {
		to = c.PrimaryOf(fmt.Sprint("a", i))
	}
	slot := fmt.Sprint(wire.Slot(name))
	to.MustDo("CLUSTER", "SETSLOT", slot, "IMPORTING", fmt.Sprint(from.MustDo("CLUSTER", "MYID")))
	from.MustDo("CLUSTER", "SETSLOT", slot, "MIGRATING", fmt.Sprint(to.MustDo("CLUSTER", "MYID")))
	h, err := client.Lock(name).Acquire(t.Context())
	if err == nil {
		t.Errorf("a lock in a slot that moves is acquired by %s", h.ID())
	}
	to.MustDo("CLUSTER", "SETSLOT", slot, "STABLE")
	from.MustDo("CLUSTER", "SETSLOT", slot, "STABLE")
	if err := client.Lock(name).Do(t.Context(), func(context.Context) error { return nil }); err != nil {
		t.Errorf("when the slot has stayed: %v", err)
	}
}
