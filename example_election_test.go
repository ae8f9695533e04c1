package redlatch_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"

	"github.com/redlatch/redlatch"
)

func ExampleElection_Run() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	// Every replica does this. One leads at a time; when it ends, another one follows at once.
	err := newClient().Election("scheduler").Run(ctx, func(ctx context.Context) error {
		term := redlatch.HoldFrom(ctx).Token() // higher than that of every leader before
		for ctx.Err() == nil {
			if err := ship(ctx, int(term)); err != nil {
				return err // which ends Run
			}
		}
		return nil // the term is over: Run campaigns again, unless ctx has ended
	})
	log.Print(err)
}

func ExampleElection_Observe() {
	for leader, err := range newClient().Election("scheduler").Observe(context.Background()) {
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
