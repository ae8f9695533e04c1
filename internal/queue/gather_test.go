package queue

import (
	"fmt"
	"testing"
)

// A key has one worker, which takes along whoever comes while a request is in
// flight, as many as fit, and ends when nobody is left.
func TestAWorkerTakesAlongWhoComesMeanwhile(t *testing.T) {
	var workers []func()
	g := NewGather[int](2, func(f func()) { workers = append(workers, f) })
	var sent [][]int
	send := func(all []int) {
		if sent = append(sent, all); len(sent) == 1 {
			g.Add("a", 4, nil)
		}
	}
	want := func(n int, calls string) {
		t.Helper()
		if len(workers) != n {
			t.Fatalf("%d workers so far, want %d", len(workers), n)
		}
		workers[n-1]()
		if got := fmt.Sprint(sent); got != calls {
			t.Errorf("sent %s, want %s", got, calls)
		}
	}
	for x := range 3 {
		g.Add("a", x+1, send)
	}
	want(1, "[[1 2] [3 4]]")
	g.Add("b", 5, send)
	want(2, "[[1 2] [3 4] [5]]")
	g.Add("a", 6, send)
	want(3, "[[1 2] [3 4] [5] [6]]")
	if len(g.m) != 0 {
		t.Errorf("%d keys are left", len(g.m))
	}
}
