package adapter

import (
	"errors"
	"slices"
	"testing"

	"github.com/redlatch/redlatch/driver"
)

func TestIsBreak(t *testing.T) {
	for err, want := range map[*driver.RunError]bool{
		{Outcome: driver.Unknown}:                         true,
		{Outcome: driver.NotExecuted}:                     false, // there was no connection
		driver.ServerError("READONLY no", errors.New("")): true,
		driver.ServerError("MOVED 1 h:1", errors.New("")): true,
		driver.ServerError("MASTERDOWN", errors.New("")):  true,
		driver.ServerError("WRONGTYPE", errors.New("")):   false,
		driver.ServerError("LOADING", errors.New("")):     false,
	} {
		if got := IsBreak(err); got != want {
			t.Errorf("IsBreak(%+v) = %v", err, got)
		}
	}
}

func TestBreaksOfSingleServer(t *testing.T) {
	var b Breaks
	var told, other []string
	stop := b.Register(func(node string) { told = append(told, node) })
	stopOther := b.Register(func(node string) { other = append(other, node) })
	b.All()
	b.Node([]string{"foo"})
	stop()
	stop()
	b.Node(nil)
	stopOther()
	b.All()
	if len(told) != 2 || len(other) != 3 || slices.ContainsFunc(other, func(node string) bool { return node != "" }) {
		t.Errorf("told %q and %q, want \"\" twice and thrice", told, other)
	}
}
