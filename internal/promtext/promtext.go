// Package promtext writes metrics in Prometheus' text format, version 0.0.4. It
// has what redlatch needs of that: counters and gauges with one label at most, and
// no dependency. It promises that whatever bytes a label has, Prometheus can read
// the page.
package promtext

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ContentType is that of a Page.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// A Family is all samples of a metric.
type Family struct {
	Name, Help string
	Counter    bool   // else it is a gauge
	Label      string // the name of the label of its samples; empty if they have none
	Samples    []Sample
}

// A Sample is a value. No two of a family have the same label, after Clean.
type Sample struct {
	Label string // the value of the label, with whatever bytes
	Value float64
}

var (
	helps  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	labels = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
)

// Page returns the families, a line for each sample, below a remark that
// Prometheus does not read, if there is one. A family without samples is left out.
func Page(families []Family, remark string) string {
	var b strings.Builder
	if remark != "" {
		b.WriteString("# " + Clean(remark) + "\n")
	}
	for i := range families {
		f := &families[i]
		if len(f.Samples) == 0 {
			continue
		}
		kind := "gauge"
		if f.Counter {
			kind = "counter"
		}
		b.WriteString("# HELP " + f.Name + " " + helps.Replace(f.Help) + "\n# TYPE " + f.Name + " " + kind + "\n")
		for _, s := range f.Samples {
			b.WriteString(f.Name)
			if f.Label != "" {
				b.WriteString("{" + f.Label + `="` + labels.Replace(Clean(s.Label)) + `"}`)
			}
			b.WriteString(" " + strconv.FormatFloat(s.Value, 'g', -1, 64) + "\n")
		}
	}
	return b.String()
}

// Clean returns a text that can be a label's value: what is not UTF-8 and control
// characters become U+FFFD. client_golang panics for the one, and the other would
// make a whole page unreadable for some scrapers.
func Clean(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return utf8.RuneError
		}
		return r // of what is not UTF-8, this is RuneError too
	}, text)
}
