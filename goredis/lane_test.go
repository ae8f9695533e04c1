package goredis

import (
	"testing"

	"github.com/redlatch/redlatch/internal/wire"
)

func TestSlot(t *testing.T) {
	for key, want := range map[string]int{
		"":                     0,
		"123456789":            12739, // from the cluster specification
		"foo":                  12182,
		"{foo}":                12182,
		"bar{foo}baz":          12182,
		"{foo}{bar}":           12182,
		"redisson:{foo}":       12182,
		"{}foo":                9500, // an empty tag is none
		"user1000":             3443,
		"{user1000}.following": 3443,
	} {
		if got := wire.Slot(key); got != want {
			t.Errorf("wire.Slot(%q) = %d, want %d", key, got, want)
		}
	}
}

func TestLanes(t *testing.T) {
	if got, want := laneOf("123456789"), "slots 12288-13311"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
