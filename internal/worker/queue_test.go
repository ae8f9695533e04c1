package worker

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestAQueueKeepsOrderAndSumsUpWhatIsTooMuch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ran []int
		q := NewQueue(3, func(n int) { ran = append(ran, -n) })
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
		ran := 0
		q := NewQueue(1, func(int) { ran += 100 })
		for range 5 {
			q.Add(func() {
				time.Sleep(time.Second)
				ran++
			})
			synctest.Wait()
		}
		q.Close()
		q.Add(func() { ran += 10 })
		time.Sleep(time.Minute)
		synctest.Wait()
		if ran != 1 {
			t.Errorf("ran %d", ran)
		}
	})
}

func TestAClosedQueueRunsWhatLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ran []int
		q := NewQueue(3, nil)
		add := func(how func(func()), i int) {
			how(func() {
				time.Sleep(time.Second)
				ran = append(ran, i)
			})
			synctest.Wait()
		}
		add(q.Add, 0)
		add(q.Add, 1)
		add(q.AddLasting, 2)
		add(q.Add, 3)
		q.Close()
		add(q.Add, 4)
		add(q.AddLasting, 5)
		time.Sleep(time.Minute)
		add(q.AddLasting, 6)
		time.Sleep(time.Minute)
		synctest.Wait()
		if want := []int{0, 2, 5, 6}; !slices.Equal(ran, want) {
			t.Errorf("ran %v, want %v", ran, want)
		}
	})
}

// Under a load that lasts the sum is told all the same, before what came after it.
func TestWhatWasSkippedIsToldInItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ran []int
		q := NewQueue(2, func(n int) { ran = append(ran, -n) })
		for i := range 12 {
			q.Add(func() {
				time.Sleep(2 * time.Second)
				ran = append(ran, i)
			})
			time.Sleep(time.Second)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		last, sum := -1, 0
		for _, n := range ran {
			if n < 0 {
				last, sum = last-n, sum-n
				continue
			}
			if n != last+1 {
				t.Fatalf("ran %v", ran)
			}
			last = n
		}
		if last != 11 || sum == 0 {
			t.Errorf("ran %v", ran)
		}
	})
}
