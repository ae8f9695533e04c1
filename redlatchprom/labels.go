package redlatchprom

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/redlatch/redlatch/internal/promtext"
	"github.com/redlatch/redlatch/observe"
)

// What somebody acquires, as the labels say it.
type subject struct{ kind, mode, name string }

type acquisition struct {
	subject

	outcome observe.Outcome
}

type acquisitionMetrics struct {
	count  prometheus.Counter
	waited prometheus.ExemplarObserver
}

type end struct {
	subject

	reason observe.EndReason
}

var (
	acquisitionLabels = []string{"kind", "mode", "name", "outcome"}
	endLabels         = []string{"kind", "mode", "name", "reason"}
)

func (m *Metrics) findAcquisition(a acquisition) acquisitionMetrics {
	values := a.labels(string(a.outcome))
	return acquisitionMetrics{m.acquisitions.WithLabelValues(values...), exemplary(m.waited.WithLabelValues(values...))}
}

func (m *Metrics) findEnd(e end) prometheus.ExemplarObserver {
	return exemplary(m.held.WithLabelValues(e.labels(string(e.reason))...))
}

// exemplary is what every histogram is.
func exemplary(o prometheus.Observer) prometheus.ExemplarObserver {
	return o.(prometheus.ExemplarObserver)
}

// labels are the values of the labels, in order.
func (s subject) labels(last string) []string {
	return []string{s.kind, s.mode, promtext.Clean(s.name), last}
}

// children are the metrics for some labels, which are found once: to look them up
// in a vector allocates, and takes longer.
type children[K comparable, V any] struct {
	find func(K) V

	mu    sync.RWMutex
	found map[K]V
}

func (c *children[K, V]) get(k K) V {
	c.mu.RLock()
	v, ok := c.found[k]
	c.mu.RUnlock()
	if ok {
		return v
	}
	v = c.find(k) // the same one for whoever comes at the same time
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.found == nil {
		c.found = make(map[K]V)
	}
	c.found[k] = v
	return v
}
