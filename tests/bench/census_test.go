package main

import (
	"context"
	"testing"
	"time"

	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/testserver"
)

// What the census asks about is there, for as long as it is measured: each client
// holds a lock, and some wait for one.
func TestAttendantsHoldAndWait(t *testing.T) {
	t.Parallel()
	const clients, claims = 2 * waitingEach, 2*waitingEach + 2
	server := testserver.Start(t, testserver.Redis)
	orders, ended := make(chan string), make(chan error, 1)
	go func() {
		_, err := attend(job{Addr: server.Addr(), Name: "census", Scenario: scenario{Goroutines: clients}}, orders)
		ended <- err
	}()
	orders <- "go"
	asker, err := newAttendant(server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer asker.close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for told := int64(0); told < claims; { // some may not wait yet
		p, err := admin.New(asker.Client).Participants(ctx, admin.Question{})
		if err != nil {
			t.Fatal(err)
		}
		if told = claimsIn(p); told > claims {
			t.Fatalf("clients tell of %d holds and waits, want %d", told, claims)
		}
	}
	orders <- "stop"
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestTheShareOfACoreIsOfTheRefresh(t *testing.T) {
	t.Parallel()
	if got := coreShare(measurement{ServerCPU: 50_000}); got != 1 {
		t.Errorf("50 ms in 5 s are %v %% of a core", got)
	}
}
