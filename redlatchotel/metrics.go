package redlatchotel

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/election"
	"github.com/redlatch/redlatch/observe"
)

// durations are a histogram by kind and by a word: an outcome or a reason.
type durations struct {
	metric.Float64Histogram

	key attribute.Key // of the word

	// There are few kinds and words. The set of two is made once, and read without a
	// lock and without an allocation.
	mu   sync.Mutex // held to add one
	made atomic.Pointer[map[[2]string][]metric.RecordOption]
}

func (d *durations) make(meter metric.Meter, key attribute.Key, name, what string, buckets ...float64) (err error) {
	d.key = key
	d.made.Store(new(map[[2]string][]metric.RecordOption))
	d.Float64Histogram, err = meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(what),
		metric.WithExplicitBucketBoundaries(buckets...))
	return err
}

// record adds a duration. A set with a name is made anew: nobody knows how many
// there are.
func (d *durations) record(ctx context.Context, took time.Duration, kind, word, name string) {
	if name != "" {
		d.Record(ctx, took.Seconds(), metric.WithAttributeSet(set(kind, d.key.String(word), name)))
		return
	}
	opts, ok := (*d.made.Load())[[2]string{kind, word}]
	if !ok {
		opts = d.add(kind, word)
	}
	d.Record(ctx, took.Seconds(), opts...)
}

func (d *durations) add(kind, word string) []metric.RecordOption {
	d.mu.Lock()
	defer d.mu.Unlock()
	opts := []metric.RecordOption{metric.WithAttributeSet(set(kind, d.key.String(word), ""))}
	all := map[[2]string][]metric.RecordOption{{kind, word}: opts}
	maps.Copy(all, *d.made.Load())
	d.made.Store(&all)
	return opts
}

// clients are those whose Stats are observed, as one.
type clients struct {
	mu     sync.Mutex
	all    map[*redlatch.Client]*watched
	failed uint64 // renewals of those that were watched, less those before they were: mod 2^64

	holds, permits, waiters, due, leader metric.Int64ObservableUpDownCounter
	failures                             metric.Int64ObservableCounter
	lag                                  metric.Float64ObservableGauge

	electionName func(name string) string // what metrics show for it
}

// A watched is about a client.
type watched struct {
	times  int // that it is watched
	remove func()
}

func (c *clients) make(meter metric.Meter) error {
	c.all = map[*redlatch.Client]*watched{}
	var err error
	counter := func(name, unit, what string) metric.Int64ObservableUpDownCounter {
		made, refused := meter.Int64ObservableUpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(what))
		if refused != nil {
			err = refused
		}
		return made
	}
	c.holds = counter("redlatch.holds", "{hold}", "Live holds of locks.")
	c.permits = counter("redlatch.permits", "{permit}", "Live permits of expirable semaphores.")
	c.waiters = counter("redlatch.waiters", "{waiter}", "Callers that wait for a lock or synchronizer.")
	c.due = counter("redlatch.renewals.due", "{renewal}", "Holds and permits that are to be renewed now, or are tried again.")
	c.leader = counter("redlatch.leader", "{leader}", "Whether this process leads: 1, or 0 if it only has a candidate in the election.")
	if err != nil {
		return err
	}
	if c.failures, err = meter.Int64ObservableCounter("redlatch.renewals.failed", metric.WithUnit("{renewal}"),
		metric.WithDescription("Renewals of a hold or permit that failed.")); err != nil {
		return err
	}
	if c.lag, err = meter.Float64ObservableGauge("redlatch.renewals.lag", metric.WithUnit("1"),
		metric.WithDescription("How much of its lease the hold or permit nearest to its end has used since it was last confirmed; 0 if none is due.")); err != nil {
		return err
	}
	_, err = meter.RegisterCallback(c.observe, c.holds, c.permits, c.waiters, c.due, c.leader, c.failures, c.lag)
	return err
}

// Watch records what happens to the client from now on, and makes the metrics
// include its [redlatch.Stats], until stop is called. These are read whenever
// metrics are collected, which takes time in proportion to what the client holds:
// see Client.Stats. When stop has returned, the client is not asked again. Call
// stop after Close, or the spans of what is held do not end.
//
// All clients that are watched are added up, and a client that is watched twice
// counts once. Renewals that failed before Watch are not counted. Those that
// failed before stop stay counted.
func (t *Telemetry) Watch(client *redlatch.Client) (stop func()) {
	c := &t.watched
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.all[client]
	if w == nil {
		w = &watched{remove: observe.Add(client, t.hooks())}
		c.all[client] = w
		c.failed -= client.Stats().RenewalsFailed
	}
	w.times++
	return sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if w.times--; w.times == 0 {
			w.remove()
			delete(c.all, client)
			c.failed += client.Stats().RenewalsFailed
		}
	})
}

func (c *clients) observe(_ context.Context, o metric.Observer) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	sum := redlatch.Stats{RenewalsFailed: c.failed}
	for client := range c.all {
		sum = sum.Plus(client.Stats())
	}
	if c.failed != 0 || len(c.all) > 0 { // also of those that are watched no longer
		o.ObserveInt64(c.failures, int64(sum.RenewalsFailed))
	}
	if len(c.all) == 0 {
		return nil
	}
	o.ObserveInt64(c.holds, int64(sum.Holds))
	o.ObserveInt64(c.permits, int64(sum.Permits))
	o.ObserveInt64(c.waiters, int64(sum.Waiters))
	o.ObserveInt64(c.due, int64(sum.RenewalsDue))
	o.ObserveFloat64(c.lag, sum.RenewalLag)
	for name, leads := range c.leaders() {
		var attributes []attribute.KeyValue
		if name != "" {
			attributes = append(attributes, nameKey.String(name))
		}
		o.ObserveInt64(c.leader, leads, metric.WithAttributes(attributes...))
	}
	return nil
}

// leaders returns 1 or 0 for each name that metrics show of an election. Elections
// with the same one are as one.
func (c *clients) leaders() map[string]int64 {
	all := map[string]int64{}
	for client := range c.all {
		for name, leads := range election.Standing(client) {
			name, n := c.electionName(name), int64(0)
			if leads {
				n = 1
			}
			all[name] = max(all[name], n)
		}
	}
	return all
}
