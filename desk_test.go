package redlatch

import (
	"testing"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/request"
)

// What a desk owes is forgotten by a timer, which may come when the desk is gone and
// another one has callers.
func TestADeskIsNotForgottenForOneOfBefore(t *testing.T) {
	s := &ExpirableSemaphore{c: &Client{server: &request.Server{}}, name: "desks"}
	ds := &desks{}
	old := ds.get(s)
	ds.put(old)
	d := ds.get(s)
	d.serving = true
	ds.put(old)
	if ds.m[s.name] != d {
		t.Error("it was forgotten")
	}
}

// A desk that is new hears of releases that began before it, and would take their
// messages for those of others.
func TestADeskLastsForTheReleasesThatItHearsOf(t *testing.T) {
	s := &ExpirableSemaphore{c: &Client{server: &request.Server{}}, name: "desks"}
	ds := &desks{}
	d, _, foreign := ds.releasing(s)
	if other, _, _ := ds.releasing(s); other != d {
		t.Error("the second release has a desk of its own")
	}
	ds.released(d, driver.Reply{}, foreign)
	if ds.m[s.name] != d {
		t.Error("a release is under way, and its desk is gone")
	}
	ds.released(d, driver.Reply{}, foreign)
	if len(ds.m) != 0 {
		t.Error("the desk stays")
	}
}
