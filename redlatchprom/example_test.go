package redlatchprom_test

import (
	"context"
	"log"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/redlatchprom"
)

// driver is that of the program: redlatchgoredis.Use(rdb), say.
var driverOfProgram driver.Redis

// Metrics of all that a client does.
func Example() {
	driver := driverOfProgram

	client, err := redlatch.New(driver, redlatch.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	prometheus.MustRegister(redlatchprom.New(redlatchprom.Options{}, client))
}

// Some locks are told by their names, and waits lead to their traces.
func ExampleOptions() {
	metrics := redlatchprom.New(redlatchprom.Options{
		Name: redlatchprom.Only("nightly-report", "billing"),
		Exemplar: func(ctx context.Context) prometheus.Labels {
			if id := traceID(ctx); id != "" {
				return prometheus.Labels{"trace_id": id}
			}
			return nil
		},
	})
	prometheus.MustRegister(metrics)
}

// traceID is trace.SpanContextFromContext(ctx).TraceID().String(), say.
func traceID(context.Context) string { return "" }

// A client that is made later, and ends earlier than the program.
func ExampleMetrics_Watch() {
	metrics := redlatchprom.New(redlatchprom.Options{})
	prometheus.MustRegister(metrics)

	client, err := redlatch.New(driverOfProgram, redlatch.Config{})
	if err != nil {
		log.Fatal(err)
	}
	stop := metrics.Watch(client)
	defer stop() // after Close, so that what Close ends is counted
	defer client.Close()
}
