package adapter

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
)

func TestLaneOf(t *testing.T) {
	for key, want := range map[string]string{
		"":          "slots 0-1023",
		"123456789": "slots 12288-13311",
		"{}foo":     "slots 9216-10239",
	} {
		if got := LaneOf(key); got != want {
			t.Errorf("LaneOf(%q) = %q, want %q", key, got, want)
		}
	}
	if last := laneNames[lanes-1]; last != "slots 15360-16383" {
		t.Errorf("the last lane is %q", last)
	}
}

func TestIsBreak(t *testing.T) {
	for err, want := range map[*redlatch.RunError]bool{
		{Outcome: redlatch.Unknown}:                         true,
		{Outcome: redlatch.NotExecuted}:                     false, // there was no connection
		redlatch.ServerError("READONLY no", errors.New("")): true,
		redlatch.ServerError("MOVED 1 h:1", errors.New("")): true,
		redlatch.ServerError("MASTERDOWN", errors.New("")):  true,
		redlatch.ServerError("WRONGTYPE", errors.New("")):   false,
		redlatch.ServerError("LOADING", errors.New("")):     false,
	} {
		if got := IsBreak(err); got != want {
			t.Errorf("IsBreak(%+v) = %v", err, got)
		}
	}
}

func TestBreaksOfSingleServer(t *testing.T) {
	var b Breaks
	var told, other []string
	stop := b.Register(func(lane string) { told = append(told, lane) })
	stopOther := b.Register(func(lane string) { other = append(other, lane) })
	b.All()
	b.Lane([]string{"foo"})
	stop()
	stop()
	b.Lane(nil)
	stopOther()
	b.All()
	if len(told) != 2 || len(other) != 3 || slices.ContainsFunc(other, func(lane string) bool { return lane != "" }) {
		t.Errorf("told %q and %q, want \"\" twice and thrice", told, other)
	}
}

// Every lane hears of a break, but not of every script that meets it.
func TestBreaksOfCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b Breaks
		b.SetCluster(true)
		var told []string
		defer b.Register(func(lane string) { told = append(told, lane) })()
		expect := func(what string, want ...string) {
			t.Helper()
			if !slices.Equal(told, want) {
				t.Errorf("%s: told %q, want %q", what, told, want)
			}
			told = nil
		}
		foo := []string{"foo", "{foo}bar"}
		b.Lane(foo)
		expect("first", laneNames[:]...)
		b.Lane(foo)
		expect("second", LaneOf("foo"))
		time.Sleep(time.Second)
		b.Lane(foo)
		expect("a second later", laneNames[:]...)
		b.Lane(nil)
		expect("without keys", laneNames[:]...)
		b.All()
		expect("All", laneNames[:]...)
	})
}
