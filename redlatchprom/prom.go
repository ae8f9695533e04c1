package redlatchprom

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/observe"
)

// Options say how Metrics work. The zero value works.
type Options struct {
	// Name returns the value of the label name for the name of a lock or synchronizer.
	// For several locks that are acquired as one, it gets their names with commas
	// between them. It must return one of a few values, because each makes time series
	// that stay until the process ends. It is called at the end of each acquisition
	// and hold, by several goroutines at a time. Control characters, and what is not
	// UTF-8, become U+FFFD. See Only. If Name is nil, the label is empty, but for
	// redlatch_leader, which has the names of elections then: a process stands in few.
	Name func(name string) string

	// Exemplar returns the labels of an exemplar, such as {"trace_id": "..."}, or nil
	// for none. It is called when the acquisition ends and when its hold ends, with
	// the context that observe.Hooks.AcquireStart returned, or otherwise the context
	// of the acquisition. An exemplar that Prometheus refuses, because it is longer
	// than 128 characters or not UTF-8, is left out. If Exemplar is nil, there are no
	// exemplars.
	Exemplar func(ctx context.Context) prometheus.Labels

	// Native makes the histograms native ones as well. Then an observation may
	// allocate.
	Native bool
}

// Only returns a function for Options.Name: these names are shown as they are, and
// all other names as the empty one.
func Only(names ...string) func(name string) string {
	told := make(map[string]bool, len(names))
	for _, name := range names {
		told[name] = true
	}
	return func(name string) string {
		if told[name] {
			return name
		}
		return ""
	}
}

// waits are the buckets of acquisitions: from an uncontended one to one that
// nobody should have to wait for. holds are those of holds, which are work.
var (
	waits = []float64{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60}
	holds = []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600}
)

// Metrics are a prometheus.Collector. They are safe for concurrent use.
type Metrics struct {
	opts Options

	acquisitions *prometheus.CounterVec
	waited, held *prometheus.HistogramVec
	lost         *prometheus.CounterVec

	dropped, renewalsFailed, releasesFailed, requeued, notAcknowledged, skipped prometheus.Counter

	ofAcquisition children[acquisition, acquisitionMetrics]
	ofEnd         children[end, prometheus.ExemplarObserver]

	mu      sync.Mutex
	watched map[*redlatch.Client]*watched
}

// A watched is about a client.
type watched struct {
	times  int // that it is watched
	remove func()
}

// New returns Metrics of these clients, which the caller has to register. Watch
// adds clients that are made later. A registry takes one Metrics, or several with
// different labels (prometheus.WrapRegistererWith).
func New(opts Options, clients ...*redlatch.Client) *Metrics {
	m := &Metrics{
		opts: opts,
		acquisitions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "redlatch_acquisitions_total", Help: "Acquisitions that have ended, by how they went.",
		}, acquisitionLabels),
		waited: histograms(opts, "redlatch_acquire_wait_seconds", "How long acquisitions took, by how they went.", waits, acquisitionLabels),
		held:   histograms(opts, "redlatch_hold_seconds", "How long locks and permits were held, by how that ended.", holds, endLabels),
		lost: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "redlatch_lost_total", Help: "Holds and permits that were lost, by why.",
		}, []string{"reason"}),
		dropped:         counter("redlatch_dropped_total", "Holds and permits that were garbage collected without having been released."),
		renewalsFailed:  counter("redlatch_renewals_failed_total", "Renewals that failed, one for each hold and try."),
		releasesFailed:  counter("redlatch_releases_failed_total", "Releases that could not be confirmed."),
		requeued:        counter("redlatch_requeued_total", "Waiters that lost their place in the queue of a fair lock."),
		notAcknowledged: counter("redlatch_not_acknowledged_total", "Changes that went on without the acknowledgement of their replicas."),
		skipped:         counter("redlatch_events_skipped_total", "Events that were too many to be told."),
		watched:         make(map[*redlatch.Client]*watched),
	}
	m.ofAcquisition.find, m.ofEnd.find = m.findAcquisition, m.findEnd
	// A counter that begins at 1 has not increased, for Prometheus: the first loss
	// would go unnoticed.
	for _, reason := range []redlatch.LossReason{redlatch.LostExpired, redlatch.LostGone, redlatch.LostRevoked, redlatch.LostMaxHold, redlatch.LostLease} {
		m.lost.WithLabelValues(string(reason))
	}
	for _, client := range clients {
		m.Watch(client)
	}
	return m
}

func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
}

func histograms(opts Options, name, help string, buckets []float64, labels []string) *prometheus.HistogramVec {
	h := prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}
	if opts.Native {
		h.NativeHistogramBucketFactor, h.NativeHistogramMaxBucketNumber, h.NativeHistogramMinResetDuration = 1.1, 100, time.Hour
	}
	return prometheus.NewHistogramVec(h, labels)
}

// hooks are what counts. They need no call sites (Lost, SlowWait and Dropped
// would), so that a program that does not ask for call sites does not pay for
// them.
func (m *Metrics) hooks() observe.Hooks {
	return observe.Hooks{
		AcquireEnd:      func(ctx context.Context, e observe.AcquireEndEvent) { m.acquireEnd(ctx, &e) },
		HoldEnd:         func(ctx context.Context, e observe.HoldEndEvent) { m.holdEnd(ctx, &e) },
		ReleaseFailed:   func(observe.ReleaseFailedEvent) { m.releasesFailed.Inc() },
		RenewFailed:     func(e observe.RenewFailedEvent) { m.renewalsFailed.Add(float64(e.Holds)) },
		Requeued:        func(observe.RequeuedEvent) { m.requeued.Inc() },
		NotAcknowledged: func(observe.NotAcknowledgedEvent) { m.notAcknowledged.Inc() },
		Skipped:         func(e observe.SkippedEvent) { m.skipped.Add(float64(e.Events)) },
	}
}

func (m *Metrics) acquireEnd(ctx context.Context, e *observe.AcquireEndEvent) {
	of := m.ofAcquisition.get(acquisition{subject{string(e.Kind), e.Mode, m.name(e.Name)}, e.Outcome})
	of.count.Inc()
	m.observe(ctx, of.waited, e.Waited)
}

func (m *Metrics) holdEnd(ctx context.Context, e *observe.HoldEndEvent) {
	m.observe(ctx, m.ofEnd.get(end{subject{string(e.Kind), e.Mode, m.name(e.Name)}, e.Reason}), e.Held)
	switch e.Reason {
	case observe.EndLost:
		var lost *redlatch.LostError
		if errors.As(e.Err, &lost) { // always
			m.lost.WithLabelValues(string(lost.Reason)).Inc()
		}
	case observe.EndDropped:
		m.dropped.Inc()
	}
}

func (m *Metrics) name(name string) string {
	if m.opts.Name == nil {
		return ""
	}
	return m.opts.Name(name)
}

func (m *Metrics) observe(ctx context.Context, of prometheus.ExemplarObserver, d time.Duration) {
	var labels prometheus.Labels
	if m.opts.Exemplar != nil {
		labels = m.opts.Exemplar(ctx)
	}
	if len(labels) == 0 {
		labels = nil // one without labels says nothing
	}
	// The observation counts before the exemplar is looked at, and a panic is what
	// becomes of a bad one. An event's function must not panic.
	defer func() { _ = recover() }()
	of.ObserveWithExemplar(d.Seconds(), labels)
}

// Watch makes Metrics count what happens to the client from now on, and collect
// its Stats, until stop is called. A client that is watched more than once counts
// once, until each stop has been called. To have what Close ends counted, call
// stop after Close.
func (m *Metrics) Watch(client *redlatch.Client) (stop func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	w := m.watched[client]
	if w == nil {
		w = &watched{remove: observe.Add(client, m.hooks())}
		m.watched[client] = w
	}
	w.times++
	return sync.OnceFunc(func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if w.times--; w.times == 0 {
			w.remove()
			delete(m.watched, client)
		}
	})
}
