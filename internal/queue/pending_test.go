package queue

import "testing"

func TestPendingIsNoneAtOnceOrWhenTheLastIsOver(t *testing.T) {
	var pending Pending
	isNone := func(c <-chan struct{}) bool {
		select {
		case <-c:
			return true
		default:
			return false
		}
	}
	if !isNone(pending.None()) {
		t.Error("nothing is pending, and that is not told")
	}
	pending.Add(2)
	one, other := pending.None(), pending.None()
	pending.Add(-1)
	if isNone(one) {
		t.Error("one is still pending")
	}
	pending.Add(-1)
	if !isNone(one) || !isNone(other) || !isNone(pending.None()) {
		t.Error("nothing is pending any longer, and not all are told")
	}
	pending.Add(1)
	if !isNone(one) || isNone(pending.None()) {
		t.Error("what comes later is not waited for by those who waited before")
	}
}

func TestRegistryIsIdleWhenNothingIsUsed(t *testing.T) {
	type thing struct{ Users }
	var r Registry[string, *thing]
	build := func() *thing { return &thing{} }
	x := r.Get("x", build)
	y := r.Get("y", build)
	r.Retain(x)
	idle := r.Idle()
	for _, last := range []func(){func() { r.Put("x", x, nil) }, func() { r.Put("y", y, nil) }, func() { r.Put("x", x, nil) }} {
		select {
		case <-idle:
			t.Fatal("idle, and something is used")
		default:
		}
		last()
	}
	<-idle
	<-r.Idle()
}
