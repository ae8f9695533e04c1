package pages

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// The figures of the README are those of the page that the benchmarks write,
// however often they write it.
func TestTheReadmeHasTheFiguresOfTheBenchmarks(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	readme, page := read("../../README.md"), read("../../docs/performance.md")
	// rate is the number in a column of the row of a library, in the table after a
	// text.
	rate := func(after, library string, column int) float64 {
		_, table, found := strings.Cut(page, after)
		_, line, row := strings.Cut(table, "\n| "+library+" |")
		if !found || !row {
			t.Fatalf("docs/performance.md has no %s under %q", library, after)
		}
		cell := strings.Split(strings.SplitN(line, "\n", 2)[0], "|")[column]
		number, err := strconv.ParseFloat(strings.ReplaceAll(strings.Fields(cell)[0], ",", ""), 64)
		if err != nil {
			t.Fatal(err)
		}
		return number
	}
	const alone, one = "| pairs/s, round trips 0.3 ms longer, by goroutines |", "### One key, 1 process x 16 goroutines, empty section"
	for _, row := range []struct {
		begins, after, format string
		column                int
		libraries             map[int]string // by the column in the README
	}{
		{"| speed, a key each, 64 goroutines", alone, "%.2f", 6, map[int]string{2: "redlatch on go-redis", 3: "redsync", 4: "redislock", 5: "rueidislock, 1 key"}},
		{"| speed, one key that 16 goroutines want", one, "%.3f", 0, map[int]string{3: "redsync", 4: "redislock, 2 ms", 5: "rueidislock, 1 key", 7: "Redisson"}},
	} {
		_, line, found := strings.Cut(readme, "\n"+row.begins)
		if !found {
			t.Errorf("README has no row %q", row.begins)
			continue
		}
		cells := strings.Split(row.begins+strings.SplitN(line, "\n", 2)[0], "|")
		ours := rate(row.after, "redlatch on rueidis", row.column)
		for column, library := range row.libraries {
			want := fmt.Sprintf(row.format, rate(row.after, library, row.column)/ours)
			if shown := regexp.MustCompile(`0\.\d+`).FindString(strings.SplitN(cells[column], "](", 2)[0]); shown != want {
				t.Errorf("README, %s, %s: %q, and the page has %s", row.begins, library, shown, want)
			}
		}
	}
}
