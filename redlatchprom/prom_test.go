package redlatchprom_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/observe"
	"github.com/redlatch/redlatch/redlatchprom"
)

func acquired(name string, waited time.Duration) observe.AcquireEndEvent {
	return observe.AcquireEndEvent{Name: name, Kind: redlatch.KindLock, Waited: waited, Outcome: observe.OutcomeAcquired}
}

func released(name string, held time.Duration) observe.HoldEndEvent {
	return observe.HoldEndEvent{Name: name, Kind: redlatch.KindLock, Held: held, Reason: observe.EndReleased}
}

func lost(reason redlatch.LossReason) observe.HoldEndEvent {
	return observe.HoldEndEvent{
		Kind: redlatch.KindReadWrite, Mode: "write", Reason: observe.EndLost,
		Err: errors.Join(&redlatch.LostError{Name: "orders", Reason: reason}, &redlatch.LostError{Name: "orders", Reason: reason}),
	}
}

// want compares the metrics of these names with how Prometheus reads them.
func want(t *testing.T, m *redlatchprom.Metrics, text string, names ...string) {
	t.Helper()
	if err := testutil.CollectAndCompare(m, strings.NewReader(text), names...); err != nil {
		t.Error(err)
	}
}

func TestTheNamesAreAsPrometheusWantsThem(t *testing.T) {
	m := redlatchprom.New(redlatchprom.Options{})
	e := m.Hooks()
	e.AcquireEnd(bg, acquired("orders", 0))
	e.HoldEnd(bg, released("orders", 0))
	problems, err := testutil.CollectAndLint(m)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

func TestEventsAreCounted(t *testing.T) {
	m := redlatchprom.New(redlatchprom.Options{})
	e := m.Hooks()
	e.RenewFailed(observe.RenewFailedEvent{Holds: 3})
	e.RenewFailed(observe.RenewFailedEvent{Holds: 1})
	e.ReleaseFailed(observe.ReleaseFailedEvent{})
	e.Requeued(observe.RequeuedEvent{})
	e.NotAcknowledged(observe.NotAcknowledgedEvent{})
	e.Skipped(observe.SkippedEvent{Events: 7})
	e.HoldEnd(bg, observe.HoldEndEvent{Reason: observe.EndDropped})
	e.HoldEnd(bg, lost(redlatch.LostGone))
	e.HoldEnd(bg, lost(redlatch.LostGone))
	want(t, m, `
# HELP redlatch_dropped_total Holds and permits that were garbage collected without having been released.
# TYPE redlatch_dropped_total counter
redlatch_dropped_total 1
# HELP redlatch_events_skipped_total Events that were too many to be told.
# TYPE redlatch_events_skipped_total counter
redlatch_events_skipped_total 7
# HELP redlatch_lost_total Holds and permits that were lost, by why.
# TYPE redlatch_lost_total counter
redlatch_lost_total{reason="expired"} 0
redlatch_lost_total{reason="gone"} 2
redlatch_lost_total{reason="lease over"} 0
redlatch_lost_total{reason="max hold"} 0
redlatch_lost_total{reason="revoked"} 0
# HELP redlatch_not_acknowledged_total Changes that went on without the acknowledgement of their replicas.
# TYPE redlatch_not_acknowledged_total counter
redlatch_not_acknowledged_total 1
# HELP redlatch_releases_failed_total Releases that could not be confirmed.
# TYPE redlatch_releases_failed_total counter
redlatch_releases_failed_total 1
# HELP redlatch_renewals_failed_total Renewals that failed, one for each hold and try.
# TYPE redlatch_renewals_failed_total counter
redlatch_renewals_failed_total 4
# HELP redlatch_requeued_total Waiters that lost their place in the queue of a fair lock.
# TYPE redlatch_requeued_total counter
redlatch_requeued_total 1
`, "redlatch_dropped_total", "redlatch_events_skipped_total", "redlatch_lost_total", "redlatch_not_acknowledged_total",
		"redlatch_releases_failed_total", "redlatch_renewals_failed_total", "redlatch_requeued_total")
}

// The first loss is an increase only if there was something to increase.
func TestCountersOfWhatAlertsLookAtBeginAtZero(t *testing.T) {
	m := redlatchprom.New(redlatchprom.Options{})
	for name, series := range map[string]int{"redlatch_lost_total": 5, "redlatch_dropped_total": 1, "redlatch_renewals_failed_total": 1} {
		if got := testutil.CollectAndCount(m, name); got != series {
			t.Errorf("%s has %d time series from the beginning, want %d", name, got, series)
		}
	}
}

// Lost, SlowWait and Dropped cost every acquisition a look at its stack.
func TestNobodyPaysForCallSites(t *testing.T) {
	e := redlatchprom.New(redlatchprom.Options{}).Hooks()
	if e.Lost != nil || e.SlowWait != nil || e.Dropped != nil {
		t.Error("there are events that need call sites, and nobody has asked for them")
	}
}

func TestNamesAreToldOnRequestOnly(t *testing.T) {
	for what, c := range map[string]struct {
		name  func(string) string
		label []string // of four names
	}{
		"by default":    {nil, []string{""}},
		"the allowed":   {redlatchprom.Only("orders:1", "billing"), []string{"", "orders:1"}},
		"by a function": {func(name string) string { kind, _, _ := strings.Cut(name, ":"); return kind }, []string{"orders", "users"}},
	} {
		m := redlatchprom.New(redlatchprom.Options{Name: c.name})
		e := m.Hooks()
		for _, name := range []string{"orders:1", "orders:2", "users:1", "users:2"} {
			e.AcquireEnd(bg, acquired(name, 0))
			e.HoldEnd(bg, released(name, 0))
		}
		var series []string
		for _, label := range c.label {
			series = append(series, `redlatch_acquisitions_total{kind="lock",mode="",name="`+label+`",outcome="acquired"} `+map[int]string{1: "4", 2: "2"}[len(c.label)])
		}
		if what == "the allowed" { // one of four
			series = []string{strings.Replace(series[0], "} 2", "} 3", 1), strings.Replace(series[1], "} 2", "} 1", 1)}
		}
		t.Run(what, func(t *testing.T) {
			want(t, m, "# HELP redlatch_acquisitions_total Acquisitions that have ended, by how they went.\n# TYPE redlatch_acquisitions_total counter\n"+
				strings.Join(series, "\n")+"\n", "redlatch_acquisitions_total")
			if got := testutil.CollectAndCount(m, "redlatch_hold_seconds"); got != len(c.label) {
				t.Errorf("the holds have %d time series, want %d", got, len(c.label))
			}
		})
	}
}

// The library takes any name but an empty one. client_golang panics for some as
// labels.
func TestAnyNameCanBeTold(t *testing.T) {
	m := redlatchprom.New(redlatchprom.Options{Name: func(name string) string { return name }})
	e := m.Hooks()
	for _, name := range []string{"a\x00b", "a\xffb", "a\x1bb"} { // one label for the three
		e.AcquireEnd(bg, acquired(name, 0))
		e.HoldEnd(bg, released(name, 0))
	}
	e.AcquireEnd(bg, acquired(`say "a\b" ü`, 0))
	want(t, m, `
# HELP redlatch_acquisitions_total Acquisitions that have ended, by how they went.
# TYPE redlatch_acquisitions_total counter
redlatch_acquisitions_total{kind="lock",mode="",name="a`+"\uFFFD"+`b",outcome="acquired"} 3
redlatch_acquisitions_total{kind="lock",mode="",name="say \"a\\b\" ü",outcome="acquired"} 1
`, "redlatch_acquisitions_total")
}

func TestExemplarsLeadToTraces(t *testing.T) {
	type trace struct{}
	m := redlatchprom.New(redlatchprom.Options{Exemplar: func(ctx context.Context) prometheus.Labels {
		id, _ := ctx.Value(trace{}).(string)
		if id == "" {
			return prometheus.Labels{}
		}
		return prometheus.Labels{"trace_id": id}
	}})
	e := m.Hooks()
	for _, id := range []string{"", "abc", "no UTF-8: \xff", strings.Repeat("long", 100)} { // what is refused is left out
		ctx := context.WithValue(bg, trace{}, id)
		e.AcquireEnd(ctx, acquired("orders", time.Millisecond))
		e.HoldEnd(ctx, released("orders", time.Millisecond))
	}
	for _, name := range []string{"redlatch_acquire_wait_seconds", "redlatch_hold_seconds"} {
		h := histogram(t, m, name)
		if h.count != 4 {
			t.Errorf("%s counts %d, want 4", name, h.count)
		}
		if len(h.exemplars) != 1 || h.exemplars[0] != "trace_id=abc" {
			t.Errorf("%s has the exemplars %q", name, h.exemplars)
		}
	}
}

func TestHistogramsFitLocks(t *testing.T) {
	for _, native := range []bool{false, true} {
		m := redlatchprom.New(redlatchprom.Options{Native: native})
		e := m.Hooks()
		e.AcquireEnd(bg, acquired("orders", 100*time.Microsecond))
		e.AcquireEnd(bg, acquired("orders", time.Minute))
		e.AcquireEnd(bg, acquired("orders", time.Hour))
		h := histogram(t, m, "redlatch_acquire_wait_seconds")
		if h.count != 3 || h.below[0.0001] != 1 || h.below[30] != 1 || h.below[60] != 2 {
			t.Errorf("of %d acquisitions, so many took no longer than so many seconds: %v", h.count, h.below)
		}
		if h.native != native {
			t.Errorf("it is a native histogram: %v, want %v", h.native, native)
		}
	}
}

// A histogramSeen is what Prometheus sees of a histogram.
type histogramSeen struct {
	count     uint64
	below     map[float64]uint64 // how many, by the bounds of buckets
	native    bool
	exemplars []string
}

// histogram returns the only one of a name.
func histogram(t *testing.T, m *redlatchprom.Metrics, name string) histogramSeen {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(m)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != name || len(family.GetMetric()) != 1 {
			continue
		}
		h := family.GetMetric()[0].GetHistogram()
		seen := histogramSeen{h.GetSampleCount(), map[float64]uint64{}, len(h.GetPositiveSpan()) > 0, nil}
		for _, b := range h.GetBucket() {
			seen.below[b.GetUpperBound()] = b.GetCumulativeCount()
			for _, l := range b.GetExemplar().GetLabel() {
				seen.exemplars = append(seen.exemplars, l.GetName()+"="+l.GetValue())
			}
		}
		return seen
	}
	t.Fatal("there is no, or more than one, histogram ", name)
	return histogramSeen{}
}

func TestMetricsAreCollectedWhileTheyChange(t *testing.T) {
	m := redlatchprom.New(redlatchprom.Options{Name: func(name string) string { return name }})
	e := m.Hooks()
	const each = 50
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range each {
				name := string(rune('a' + i%26))
				e.AcquireEnd(bg, acquired(name, 0))
				e.HoldEnd(bg, released(name, 0))
				testutil.CollectAndCount(m)
			}
		})
	}
	all.Wait()
	if got := testutil.CollectAndCount(m, "redlatch_hold_seconds"); got != 26 {
		t.Errorf("%d time series of holds, want 26", got)
	}
}
