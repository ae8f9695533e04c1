package overview

import (
	"fmt"
	"reflect"
	"testing"
	"time"
)

func at(second int) time.Time { return time.Unix(1_700_000_000+int64(second), 0) }

func heldBy(name, owner string) Lock {
	ms := int64(1500)
	return Lock{Name: name, Kind: "lock", Held: true, Holders: []Holder{{Owner: owner, Told: Told{By: owner + "@host", For: &ms}}}}
}

// What is different from one listing to the next is noted once, whoever tells it
// again.
func TestAHistoryHasWhatChanges(t *testing.T) {
	t.Parallel()
	var hs Histories
	see := func(second int, locks ...Lock) { hs.Add(&Listing{At: at(second), Locks: locks}) }
	ago := int64(2000)
	free := Lock{Name: "orders", Who: Who{Lost: []Claim{{Client: "u", Owner: "one", Reason: "expired", Told: Told{By: "one@host", For: &ago}}}}}
	see(0, heldBy("orders", "one"))
	see(5, heldBy("orders", "one"))
	see(10, free)
	see(15, free)
	see(20, heldBy("orders", "two"))
	see(25) // nothing is stored under the name any more
	see(30)
	history := hs.Of("orders")
	want := []Note{{at(0), "held by one@host"}, {at(8), "lost by one@host: expired"}, {at(10), "free"}, {at(20), "held by two@host"}, {at(25), "free"}}
	if !reflect.DeepEqual(history.Notes, want) {
		t.Errorf("%+v", history.Notes)
	}
	if history.Losses != 1 || hs.Losses("orders") != 1 || hs.Losses("else") != 0 || len(history.Points) != 7 || history.Points[1].Held != 1500*time.Millisecond || history.Points[6].Held != 0 {
		t.Errorf("%+v", history)
	}
}

// A lock and a barrier of one name were one to its history: the lock was noted as
// free and as held again in every listing.
func TestABarrierHasNoPartInTheHistoryOfALockOfItsName(t *testing.T) {
	t.Parallel()
	var hs Histories
	for i := range 3 {
		hs.Add(&Listing{At: at(i), Locks: []Lock{{Name: "orders", Kind: "barrier", Exists: true}, heldBy("orders", "one")}})
	}
	history := hs.Of("orders")
	if want := []Note{{at(0), "held by one@host"}}; !reflect.DeepEqual(history.Notes, want) || len(history.Points) != 3 {
		t.Errorf("%d points, and %+v", len(history.Points), history.Notes)
	}
	hs.Add(&Listing{At: at(3), Locks: []Lock{{Name: "orders", Kind: "barrier", Exists: true}}})
	if n := len(history.Notes); n != 2 || history.Notes[1] != (Note{at(3), "free"}) {
		t.Errorf("%+v", history.Notes)
	}
}

// However long it is watched, and however many names there are, it needs no more
// than so much.
func TestHistoriesAreBounded(t *testing.T) {
	t.Parallel()
	var hs Histories
	for i := range 1000 {
		hs.Add(&Listing{At: at(i), Locks: []Lock{heldBy("orders", fmt.Sprint(i))}})
	}
	if history := hs.Of("orders"); len(history.Points) != mostPoints || len(history.Notes) != mostNotes || history.Notes[mostNotes-1].Text != "held by 999@host" {
		t.Errorf("%d points, %d notes", len(history.Points), len(history.Notes))
	}
	var many Listing
	for i := range mostNames + 500 {
		many.Locks = append(many.Locks, heldBy(fmt.Sprint("n", i), "x"))
	}
	hs.Add(&many)
	if len(hs.by) != mostNames {
		t.Errorf("%d names", len(hs.by))
	}
	for i := range mostPoints { // those are not listed any more, and make room
		hs.Add(&Listing{At: at(2000 + i), Locks: []Lock{heldBy("stock", "one")}})
	}
	hs.Add(&Listing{At: at(3000), Locks: []Lock{heldBy("stock", "one")}})
	if len(hs.by) != 1 || hs.Of("stock") == nil {
		t.Errorf("%d names", len(hs.by))
	}
}
