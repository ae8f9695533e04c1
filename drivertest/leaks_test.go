package drivertest

import (
	"strings"
	"testing"
	"time"
)

func TestLeaks(t *testing.T) {
	mine, others := watchLeaks(t), watchLeaks(t)
	end := make(chan struct{})
	go func() { <-end }() // of no test
	t.Run("leaves", func(t *testing.T) {
		mine.mark(t)
		started := make(chan struct{})
		go func() {
			go func() {
				close(started)
				<-end
			}()
		}()
		<-started
	})
	for left := mine.left(); strings.Count(left, "drivertest.TestLeaks") != 1; left = mine.left() {
		time.Sleep(time.Millisecond) // those that only have to end are seen, too
	}
	if left := mine.left(); !strings.Contains(left, `"TestLeaks/leaves"`) {
		t.Errorf("not the stack of a goroutine with its test:\n%s", left)
	}
	if left := others.left(); left != "" {
		t.Errorf("others have left:\n%s", left)
	}
	close(end) // and at the end there are none
}
