package dashboard_test

import (
	"log"
	"net/http"
	"os"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/connect"
	"github.com/redlatch/redlatch/dashboard"
)

// A service gets requests while its locks work. The liveness probe asks nobody: a
// restart would give up what is held.
func ExampleHealth() {
	var client *redlatch.Client // the program's

	internal := http.NewServeMux() // which only the platform reaches
	internal.Handle("/readyz", dashboard.Health(client, nil))
	internal.HandleFunc("/livez", func(http.ResponseWriter, *http.Request) {})
	log.Print(http.ListenAndServe("10.0.0.7:8081", internal))
}

// A program that has users shows the pages to those whom it knows: mustLogIn is
// its own.
func Example() {
	var client *redlatch.Client                                       // the program's
	mustLogIn := func(next http.Handler) http.Handler { return next } // and its authentication

	pages := dashboard.New(client, dashboard.Options{})
	defer pages.Close()

	mux := http.NewServeMux()
	mux.Handle("/locks/", mustLogIn(http.StripPrefix("/locks", pages)))

	server := &http.Server{Addr: ":8443", Handler: mux}
	server.RegisterOnShutdown(pages.Close) // else it waits for the pages that are open
	log.Print(server.ListenAndServeTLS("cert.pem", "key.pem"))
}

// A program serves metrics of all clients of its Redis beside its own, where only
// Prometheus can reach them.
func ExampleHandler_Metrics() {
	var client *redlatch.Client // the program's

	pages := dashboard.New(client, dashboard.Options{})
	defer pages.Close()

	mux := http.NewServeMux()
	mux.Handle("/locks/metrics", pages.Metrics("orders:", "jobs:"))
	log.Print(http.ListenAndServe("127.0.0.1:9090", mux))
}

// The pages list the locks of one part of the program, look every second, and show
// no password.
func ExampleOptions() {
	var client *redlatch.Client // the program's

	pages := dashboard.New(client, dashboard.Options{
		Pattern:  "orders:*",
		Interval: time.Second,
		Server:   "redis.internal:6379",
		Mask:     func(text string) string { return connect.Mask(text, os.Getenv("REDIS_PASSWORD")) },
	})
	defer pages.Close()
	log.Print(http.ListenAndServe("127.0.0.1:9000", pages))
}
