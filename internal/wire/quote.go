package wire

import (
	"fmt"
	"strconv"
	"strings"
)

// How much of what others have written an error shows.
const (
	mostQuoted = 100
	mostText   = 500
)

// Quote quotes for an error what others may have written: its beginning, and how
// long it is if that is not all.
func Quote(s string) string { return cut(s, mostQuoted, strconv.Quote) }

// Text is Quote for what an error shows without quotation marks, like owners and
// what servers say: as it is, if it can be printed and is not long.
func Text(s string) string {
	return cut(s, mostText, func(s string) string {
		for _, r := range s {
			if !strconv.IsPrint(r) || r == '\uFFFD' {
				q := strconv.Quote(s)
				return q[1 : len(q)-1]
			}
		}
		return s
	})
}

// Said puts a text that can be printed between quotation marks. It cannot end
// them: its own become apostrophes.
func Said(text string) string { return `"` + strings.ReplaceAll(text, `"`, `'`) + `"` }

// ServerText is Text for what a server says. It leaves out what a server quotes
// that does not know a command: its arguments, one of which can be a password.
func ServerText(s string) string {
	s, _, quotes := strings.Cut(s, "args beginning with:")
	if quotes {
		s += "args that are not shown"
	}
	return Text(s)
}

// NoDatabase says whether a server has refused the database that a client wants:
// it has none of that number, or is a node of a cluster, which has no other than
// 0. Servers have no code for that.
func NoDatabase(s string) bool {
	return strings.Contains(s, "DB index is out of range") || strings.Contains(s, "SELECT is not allowed in cluster mode")
}

func cut(s string, most int, show func(string) string) string {
	if len(s) <= most {
		return show(s)
	}
	return fmt.Sprintf("%s... (%d bytes)", show(s[:most]), len(s))
}
