package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/internal/acl"
	"github.com/redlatch/redlatch/internal/testserver"
)

// Doctor says of each right that is missing what docs/security.md says that it
// does, and of the others nothing.
func TestDoctorKnowsWhatAMissingRightCosts(t *testing.T) {
	t.Parallel()
	eachCost(t, "without", func(t *testing.T, right, says string) {
		t.Parallel()
		s := testserver.Start(t, testserver.Valkey)
		wantDoctor(t, "redis://app:"+password+"@"+s.Addr(), right, says, s)
	})
}

// The same in a cluster.
func TestDoctorKnowsWhatAMissingRightCostsInACluster(t *testing.T) {
	t.Parallel()
	c := testserver.StartCluster(t, testserver.Valkey)
	eachCost(t, "without, in a cluster", func(t *testing.T, right, says string) {
		wantDoctor(t, "redis+cluster://app:"+password+"@"+strings.Join(c.Addrs(), ","), right, says, c.Nodes...)
	})
}

// eachCost reads a table of docs/security.md.
func eachCost(t *testing.T, without string, f func(t *testing.T, right, says string)) {
	t.Helper()
	text, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "| "+without+" | locks |")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := 0
	for _, row := range strings.Split(table, "\n")[2:] {
		cells := strings.Split(strings.Trim(strings.ReplaceAll(row, `\|`, "\x00"), "| "), " | ")
		says := ""
		if len(cells) == 4 {
			says = cells[3]
		}
		for _, right := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[0], -1) {
			rows++
			right := strings.ReplaceAll(right[1], "\x00", "|")
			t.Run(right, func(t *testing.T) { f(t, right, says) })
		}
	}
	if rows < 10 {
		t.Errorf("the table has %d rights", rows)
	}
}

// wantDoctor takes a right away, and looks for the worst that doctor says of it.
func wantDoctor(t *testing.T, url, right, says string, servers ...*testserver.Server) {
	t.Helper()
	rule := testserver.Rule(testserver.Valkey, acl.Rule{Doctor: true}).Words()
	for _, s := range servers {
		s.MustDo(append(append([]string{"ACL", "SETUSER", "app", "reset", "on", ">" + password}, rule...), "-"+right)...)
	}
	command, sub, _ := strings.Cut(right, "|")
	r := (&redis{url: url}).run(t, "doctor")
	if strings.Contains(r.err, right) && r.code == exitUnavailable {
		r.out, says = "", strings.TrimPrefix(says, "it cannot connect")
	}
	found := ""
	for line := range strings.Lines(r.out) {
		words := strings.Fields(strings.ToLower(line))
		if len(words) > 2 && slices.Contains([]string{"problem", "warning", "note"}, words[0]) && slices.Contains(words[2:], command) && (sub != "slots" || slices.Contains(words, sub)) {
			found = words[0] + ": " + words[1]
			break // the worst comes first
		}
	}
	if found != says {
		t.Errorf("doctor says %q, and the table %q:\n%s%s", found, says, r.out, r.err)
	}
}
