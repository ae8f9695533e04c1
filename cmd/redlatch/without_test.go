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

// Doctor says of each right that is missing what docs/security.md says that it does, and of the others nothing.
func TestDoctorKnowsWhatAMissingRightCosts(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "| without | locks |")
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
			t.Run(right, func(t *testing.T) {
				t.Parallel()
				s := testserver.Start(t, testserver.Valkey)
				rule := testserver.Rule(testserver.Valkey, acl.Rule{Doctor: true}).Words()
				s.MustDo(append(append([]string{"ACL", "SETUSER", "app", "reset", "on", ">" + password}, rule...), "-"+right)...)
				r := &redis{url: "redis://app:" + password + "@" + s.Addr()}
				command, _, _ := strings.Cut(right, "|")
				found := ""
				for line := range strings.Lines(r.run(t, "doctor").out) {
					words := strings.Fields(strings.ToLower(line))
					if len(words) > 2 && slices.Contains([]string{"problem", "warning", "note"}, words[0]) && slices.Contains(words[2:], command) {
						found = words[0] + ": " + words[1]
						break // the worst comes first
					}
				}
				if found != says {
					t.Errorf("doctor says %q, and the table %q", found, says)
				}
			})
		}
	}
	if rows < 10 {
		t.Errorf("the table has %d rights", rows)
	}
}
