package election_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/election"
)

func newClient() *redlatch.Client { return nil }

func ship(ctx context.Context, token int64) error { return ctx.Err() }

func ExampleCandidate_Run() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	// Every replica does this. One leads at a time; when it ends, another one follows at once.
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
