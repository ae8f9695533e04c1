package redlatchprom_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/redlatch/redlatch/redlatchprom"
)

var (
	metricName = regexp.MustCompile(`\bredlatch_[a-z_]+`)
	histoPart  = regexp.MustCompile(`^(redlatch_(?:acquire_wait|hold)_seconds)_(?:bucket|count|sum)$`)
	exported   = regexp.MustCompile(`"(redlatch_server_[a-z_]+)"`)
	fullName   = regexp.MustCompile(`fqName: "([^"]+)"`)
	alertName  = regexp.MustCompile(`(?m)^ *- alert: (\w+)$`)
)

// described are the names of all metrics that there are.
func described(t *testing.T) map[string]bool {
	t.Helper()
	descs := make(chan *prometheus.Desc, 100)
	redlatchprom.New(redlatchprom.Options{}).Describe(descs)
	close(descs)
	all := map[string]bool{}
	for d := range descs {
		all[fullName.FindStringSubmatch(d.String())[1]] = true
	}
	return all
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A panel or an alert of a metric that there is not shows nothing, and says
// nothing.
func TestPagesNameMetricsThatThereAre(t *testing.T) {
	all, others := described(t), map[string]bool{}
	for _, m := range exported.FindAllStringSubmatch(read(t, "../internal/overview/metrics.go"), -1) {
		others[m[1]] = true
	}
	page := read(t, "../docs/production.md")
	for name := range others {
		if !strings.Contains(page, "| `"+name) {
			t.Errorf("docs/production.md does not explain %s", name)
		}
	}
	if len(others) == 0 {
		t.Error("the exporter has no metrics")
	}
	for file, tellsAll := range map[string]bool{"rules.yml": false, "rules_test.yml": false, "dashboard.json": true, "doc.go": true} {
		told := map[string]bool{}
		for _, name := range metricName.FindAllString(read(t, file), -1) {
			if m := histoPart.FindStringSubmatch(name); m != nil {
				name = m[1]
			}
			if told[name] = true; !all[name] && !others[name] {
				t.Errorf("%s has the metric %s, which there is not", file, name)
			}
		}
		for name := range all {
			if tellsAll && !told[name] {
				t.Errorf("%s does not have the metric %s", file, name)
			}
		}
	}
	if !json.Valid([]byte(read(t, "dashboard.json"))) {
		t.Error("dashboard.json is no JSON")
	}
}

// Whoever is woken by an alert finds it explained.
func TestEachAlertIsExplained(t *testing.T) {
	rules, page := read(t, "rules.yml"), read(t, "../docs/production.md")
	alerts := alertName.FindAllStringSubmatch(rules, -1)
	if len(alerts) == 0 {
		t.Fatal("there are no alerts")
	}
	for _, m := range alerts {
		if !strings.Contains(page, "| `"+m[1]+"` |") {
			t.Errorf("docs/production.md does not explain %s", m[1])
		}
		if !strings.Contains(rules, "See docs/production.md, "+m[1]+".") {
			t.Errorf("%s does not say where it is explained", m[1])
		}
	}
	if got := strings.Count(rules, "          runbook: "); got != len(alerts) {
		t.Errorf("%d of %d alerts have a runbook", got, len(alerts))
	}
}
