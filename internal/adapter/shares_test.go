package adapter

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Shares
		take := func(node string) func() {
			t.Helper()
			giveBack, err := s.Take(node, 2, time.Second)
			if err != nil {
				t.Fatal(err)
			}
			return giveBack
		}
		first := take("a")
		take("a")
		take("b") // of another node
		go func() {
			time.Sleep(time.Second / 2)
			first()
		}()
		start := time.Now()
		take("a")
		if d := time.Since(start); d != time.Second/2 {
			t.Errorf("the third has waited for %v", d)
		}
		if _, err := s.Take("a", 2, time.Second/2); err == nil || time.Since(start) != time.Second {
			t.Errorf("the fourth: %v after %v", err, time.Since(start))
		}
	})
}
