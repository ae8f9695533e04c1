package worker

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestAQueueKeepsOrderAndSumsUpWhatIsTooMuch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(1)
		defer p.Close(time.Minute)
		var ran []int
		q := NewQueue(p, 3, func(n int) { ran = append(ran, -n) })
		for i := range 10 {
			q.Add(func() {
				time.Sleep(time.Second)
				ran = append(ran, i)
			})
			if i == 0 {
				synctest.Wait() // it has begun, and waits no more
			}
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if want := []int{0, 1, 2, 3, -6}; !slices.Equal(ran, want) {
			t.Errorf("ran %v, want %v", ran, want)
		}
		q.Add(func() { ran = nil })
		synctest.Wait()
		if ran != nil {
			t.Error("a queue that was empty runs nothing any more")
		}
	})
}

func TestAClosedQueueDropsWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(1)
		ran := 0
		q := NewQueue(p, 1, func(int) { ran += 100 })
		for range 5 {
			q.Add(func() {
				time.Sleep(time.Second)
				ran++
			})
			synctest.Wait()
		}
		q.Close()
		q.Add(func() { ran += 10 })
		if !p.Close(time.Minute) || ran != 1 {
			t.Errorf("ran %d", ran)
		}
	})
}
