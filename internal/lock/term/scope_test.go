package term

import (
	"context"
	"testing"
)

// A scope may live for as long as its process. What it remembered of each lock
// that it ever had would be a leak.
func TestAScopeForgetsALockThatItHasNot(t *testing.T) {
	t.Parallel()
	scope, _ := WithOwner(context.Background()).Value(scopeKey{}).(*Scope)
	if scope == nil {
		t.Fatal("WithOwner makes no scope")
	}
	l := &Lock{Entry: EntryKey{Name: "x"}}
	remembers := func(want int, when string) {
		t.Helper()
		if got := len(scope.nests); got != want {
			t.Errorf("%s the scope remembers %d locks, want %d", when, got, want)
		}
	}
	one, other := scope.Enter(l, &Params{}), scope.Enter(l, &Params{})
	if one != other {
		t.Error("two callers of a scope have a nest each")
	}
	one.Leave(l)
	remembers(1, "while a caller waits")
	other.Leave(l)
	remembers(0, "after an acquisition that has failed")

	held := &Term{}
	h := &held.first
	h.t, h.scope, held.holds = held, scope, h
	one = scope.Enter(l, &Params{})
	one.Note(h)
	one.Leave(l)
	remembers(1, "with a hold")
	held.holds = nil
	scope.released(l)
	remembers(0, "after its release")
}
