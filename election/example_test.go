package election_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/election"
)

func newClient() *redlatch.Client { return nil }

func ship(ctx context.Context, token int64) error { return ctx.Err() }

func ExampleCandidate_Run() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	// Every replica does this. One leads at a time; when it ends, another one follows
	// at once.
	err := election.New(newClient(), "scheduler").Run(ctx, func(ctx context.Context, term int64) error {
		// term is higher than that of every leader before.
		for ctx.Err() == nil {
			if err := ship(ctx, term); err != nil {
				return err // which ends Run
			}
		}
		return nil // the term is over: Run campaigns again, unless ctx has ended
	})
	log.Print(err)
}

// A process outside of zone a leads if nobody in zone a can.
func ExampleStandby() {
	standby := 5 * time.Second
	if os.Getenv("ZONE") == "a" {
		standby = 0
	}
	scheduler := election.New(newClient(), "scheduler", election.Standby(standby))
	log.Print(scheduler.Run(context.Background(), ship))
}

// A leader outside of zone a looks every minute whether somebody in zone a waits,
// and hands the leadership back then. Each client says where it is:
// redlatch.Config{Identity: redlatch.Identity{Labels: map[string]string{"zone":
// "a"}}}.
func ExampleCandidate_Resign() {
	ctx, client := context.Background(), newClient()
	scheduler := election.New(client, "scheduler", election.Standby(5*time.Second))
	for range time.Tick(time.Minute) {
		if _, leads := scheduler.Leading(); !leads {
			continue
		}
		all, err := admin.New(client).Participants(ctx, admin.Question{Names: []string{"scheduler"}})
		if err != nil {
			log.Print(err)
			continue
		}
		if slices.ContainsFunc(all.Clients, func(c admin.Participant) bool {
			return len(c.Waiting) > 0 && c.Identity.Labels["zone"] == "a"
		}) {
			if _, err := scheduler.Resign(ctx); err != nil { // the one that waits leads at once, and this one stands by again
				log.Print(err)
			}
		}
	}
}

// A load balancer sends requests to the leader only.
func ExampleCandidate_Leading() {
	scheduler := election.New(newClient(), "scheduler")
	http.HandleFunc("/ready", func(w http.ResponseWriter, _ *http.Request) {
		if _, leads := scheduler.Leading(); !leads {
			http.Error(w, "not the leader", http.StatusServiceUnavailable)
		}
	})
}

func ExampleCandidate_Observe() {
	for leader, err := range election.New(newClient(), "scheduler").Observe(context.Background()) {
		switch {
		case err != nil:
			log.Print(err)
		case leader.Owner == "":
			fmt.Println("nobody leads")
		default:
			fmt.Printf("%s leads, term %d\n", leader.By, leader.Term)
		}
	}
}

// A page of the program shows in which elections it stands, and where it leads.
func ExampleStanding() {
	client := newClient()
	http.HandleFunc("/elections", func(w http.ResponseWriter, _ *http.Request) {
		for name, leads := range election.Standing(client) {
			fmt.Fprintln(w, name, leads)
		}
	})
}
