package redlatchprom

import (
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/election"
	"github.com/redlatch/redlatch/internal/promtext"
)

// A now is what the watched clients do at a moment, together.
type now struct {
	redlatch.Stats

	clients int
}

// gauges are made of it when somebody collects them.
var gauges = []struct {
	desc  *prometheus.Desc
	value func(m *Metrics, n now) float64
}{
	{
		gauge("redlatch_clients", "Clients that are watched."),
		func(_ *Metrics, n now) float64 { return float64(n.clients) },
	},
	{
		gauge("redlatch_held", "Holds of locks. Each re-entry counts, and each member of several locks."),
		func(_ *Metrics, n now) float64 { return float64(n.Holds) },
	},
	{
		gauge("redlatch_permits", "Permits of expirable semaphores that are held."),
		func(_ *Metrics, n now) float64 { return float64(n.Permits) },
	},
	{
		gauge("redlatch_waiters", "Callers that wait."),
		func(_ *Metrics, n now) float64 { return float64(n.Waiters) },
	},
	{
		gauge("redlatch_renewals_due", "Holds and permits that are to be renewed now."),
		func(_ *Metrics, n now) float64 { return float64(n.RenewalsDue) },
	},
	{
		gauge("redlatch_renewal_lag_ratio", "How much of its lease the hold or permit nearest to its end has used since it was last confirmed: about 1/3 at most is well, at 1 it is lost; 0 if none is due."),
		func(_ *Metrics, n now) float64 { return n.RenewalLag },
	},
}

// leader is a gauge for each election.
var leader = prometheus.NewDesc("redlatch_leader", "Whether this process leads: 1, or 0 if it only has a candidate in the election.", []string{"name"}, nil)

func gauge(name, help string) *prometheus.Desc { return prometheus.NewDesc(name, help, nil, nil) }

// collectors are those that keep their values themselves.
func (m *Metrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{
		m.acquisitions, m.waited, m.held, m.lost,
		m.dropped, m.renewalsFailed, m.releasesFailed, m.requeued, m.notAcknowledged, m.skipped,
	}
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range m.collectors() {
		c.Describe(ch)
	}
	for _, g := range gauges {
		ch <- g.desc
	}
	ch <- leader
}

// Collect implements prometheus.Collector. It asks the clients and no server.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	for _, c := range m.collectors() {
		c.Collect(ch)
	}
	m.mu.Lock()
	clients := slices.Collect(maps.Keys(m.watched))
	m.mu.Unlock()
	n := now{clients: len(clients)}
	for _, c := range clients {
		n.Stats = n.Plus(c.Stats())
	}
	for _, g := range gauges {
		ch <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, g.value(m, n))
	}
	for label, value := range m.leaders(clients) {
		ch <- prometheus.MustNewConstMetric(leader, prometheus.GaugeValue, value, label)
	}
}

// leaders returns the values of leader by the label. Elections with the same label
// are as one.
func (m *Metrics) leaders(clients []*redlatch.Client) map[string]float64 {
	all := map[string]float64{}
	for _, c := range clients {
		for name, leads := range election.Standing(c) {
			if m.opts.Name != nil {
				name = m.opts.Name(name)
			}
			label, value := promtext.Clean(name), 0.0
			if leads {
				value = 1
			}
			all[label] = max(all[label], value)
		}
	}
	return all
}
