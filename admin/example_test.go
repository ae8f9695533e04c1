package admin_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
)

func ExampleAdmin_Locks() {
	for info, err := range admin.New(newClient()).Locks(context.Background(), "orders:*") {
		if err != nil {
			log.Print(err)
			return
		}
		fmt.Println(info.Name, info.Holders[0].Owner, info.TTL)
	}
}

// It shows who has the lock, and for how long the client says that it has had it.
func ExampleAdmin_Participants() {
	p, err := admin.New(newClient()).Participants(context.Background(), admin.Question{Names: []string{"orders:42"}})
	if err != nil {
		log.Print(err)
		return
	}
	for _, client := range p.Clients {
		for _, claim := range client.Held {
			fmt.Println(client.Identity, "has it for", claim.For)
		}
	}
}

// A client may claim what Redis does not have: a hold that it has lost and does
// not know of yet, or one that it made up.
func ExampleEvidence() {
	p, err := admin.New(newClient()).Participants(context.Background(), admin.Question{})
	if err != nil {
		log.Print(err)
		return
	}
	for _, client := range p.Clients {
		for _, claim := range client.Held {
			if claim.Evidence == admin.EvidenceNotStored {
				fmt.Println(client.Identity, "believes that it has", claim.Name)
			}
		}
	}
}

// It logs who gets the lock and who gives it back, until the program ends. The
// lock's users notice nothing.
func ExampleAdmin_Watch() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	for change, err := range admin.New(newClient()).Watch(ctx, "orders:42") {
		switch {
		case err != nil:
			log.Print(err) // Watch goes on
		case change.What == admin.ChangeLost:
			log.Printf("%s was lost by %s: %s", change.Info.Name, change.Holder.By, change.Reason)
		default:
			log.Print(change)
		}
	}
}

// A holder that hangs is told that its hold is lost, and the lock is free.
func ExampleForceRelease() {
	ctx, lock := context.Background(), newClient().Lock("orders:42")
	info, err := admin.LockInfo(ctx, lock)
	if err == nil && info.Held() {
		_, err = admin.ForceRelease(ctx, lock)
	}
	if errors.Is(err, redlatch.ErrUnavailable) {
		log.Print("nobody knows whether it is free: ", err)
	}
}

func newClient() *redlatch.Client { return nil }

// Who holds a lock, and who waits for it.
func ExampleInfo() {
	info, err := admin.New(newClient()).Info(context.Background(), "tickets")
	if err != nil {
		log.Print(err)
		return
	}
	for _, holder := range info.Holders {
		fmt.Println(holder.Owner, "has it, and its lease ends in", info.TTL)
	}
	for i, waiter := range info.Queue { // of a fair lock
		fmt.Println(i+1, "in the queue:", waiter.Owner)
	}
}

// Callers that wait for one another, of whatever processes. A circle that is seen
// twice is no passing one.
func ExampleParticipants_PossibleDeadlocks() {
	ctx, a := context.Background(), admin.New(newClient())
	earlier, err := a.Participants(ctx, admin.Question{})
	if err != nil {
		log.Print(err)
		return
	}
	time.Sleep(10 * time.Second)
	now, err := a.Participants(ctx, admin.Question{})
	if err != nil {
		log.Print(err)
		return
	}
	for _, circle := range now.PossibleDeadlocks(earlier) {
		for _, wait := range circle {
			log.Print(wait)
		}
	}
}
