package main

import (
	"slices"
	"testing"
	"unsafe"
)

func TestPageSeesOverlapsAndHandOffs(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/page"
	if err := newPage(path); err != nil {
		t.Fatal(err)
	}
	// As in two processes: mapped twice.
	one, err := openPage(path)
	if err != nil {
		t.Fatal(err)
	}
	two, err := openPage(path)
	if err != nil {
		t.Fatal(err)
	}
	if alone, handedAt := one.enter(1); !alone || handedAt != 0 {
		t.Errorf("the first: alone %v, handed on at %d", alone, handedAt)
	}
	if alone, _ := two.enter(2); alone {
		t.Error("an overlap was not seen")
	}
	two.leave(2)
	left := one.leave(1)
	if alone, handedAt := two.enter(2); !alone || handedAt != left {
		t.Errorf("the next: alone %v, handed on at %d, want %d", alone, handedAt, left)
	}
	two.leave(2)
	if _, handedAt := two.enter(2); handedAt != 0 {
		t.Error("a goroutine handed the lock on to itself")
	}
	two.leave(2)

	if !one.enterShared(solitary-1) || !two.enterShared(solitary-1) {
		t.Error("two who share are an overlap")
	}
	if alone, _ := one.enter(1); alone {
		t.Error("an overlap with those who share was not seen")
	}
	if two.enterShared(solitary - 1) {
		t.Error("an overlap of one who shares was not seen")
	}
	one.leave(1)
	for range 3 {
		two.leaveShared()
	}
	if alone, _ := one.enter(1); !alone {
		t.Error("somebody is still inside")
	}
	one.leave(1)
	for n := int32(1); n <= 9; n++ {
		if one.enterShared(8) != (n <= 8) {
			t.Errorf("of 8 permits, %d are out: not seen as it is", n)
		}
	}
	one.end()
	if alone, _ := two.enter(2); !alone {
		t.Error("an overlap was seen after the end")
	}
}

// Page.java has these numbers.
func TestThePageIsAsJavaKnowsIt(t *testing.T) {
	t.Parallel()
	var p page
	got := []uintptr{unsafe.Offsetof(p.inside), unsafe.Offsetof(p.releasedBy), unsafe.Offsetof(p.releasedAt), unsafe.Sizeof(p), solitary}
	if want := []uintptr{0, 64, 72, 80, 1 << 16}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestAHandOffToAnotherProcessIsSeen(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/page"
	if err := newPage(path); err != nil {
		t.Fatal(err)
	}
	shared, err := openPage(path)
	if err != nil {
		t.Fatal(err)
	}
	w := worker{page: shared, who: 9, together: 4} // the first of the third process
	if w.crossed() {
		t.Error("nobody had it before")
	}
	for by, want := range map[int64]bool{1: true, 8: true, 9: false, 12: false, 13: true} {
		shared.enter(by)
		shared.leave(by)
		if got := w.crossed(); got != want {
			t.Errorf("after %d: %v", by, got)
		}
	}
}
