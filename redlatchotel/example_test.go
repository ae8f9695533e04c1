package redlatchotel_test

import (
	"context"
	"log"
	"strings"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/redlatchotel"
)

var driverOfProgram driver.Redis // redlatchgoredis.Use(...), or another

// The providers are the global ones, which the program has set up with its SDK.
func Example() {
	driver := driverOfProgram

	client, err := redlatch.New(driver, redlatch.Config{})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := redlatchotel.New(redlatchotel.Options{}, client); err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	_ = client.Lock("orders:42").Do(context.Background(), func(ctx context.Context) error {
		return ship(ctx, 42) // its spans are below that of the hold
	})
}

// Metrics tell "orders" from "accounts", and not one order from another. Spans
// have no names of people.
func ExampleOptions() {
	_, err := redlatchotel.New(redlatchotel.Options{
		Name: func(name string) string {
			if strings.HasPrefix(name, "people:") {
				return ""
			}
			return name
		},
		MetricName: func(name string) string {
			family, _, _ := strings.Cut(name, ":")
			switch family {
			case "orders", "accounts":
				return family
			}
			return "other"
		},
	})
	if err != nil {
		log.Fatal(err)
	}
}

func ship(context.Context, int) error { return nil }

// A client that is made later, and ends earlier than the program.
func ExampleTelemetry_Watch() {
	telemetry, err := redlatchotel.New(redlatchotel.Options{})
	if err != nil {
		log.Fatal(err)
	}
	client, err := redlatch.New(driverOfProgram, redlatch.Config{})
	if err != nil {
		log.Fatal(err)
	}
	stop := telemetry.Watch(client)
	defer stop() // after Close, so that the spans of what Close ends do end
	defer client.Close()
}
