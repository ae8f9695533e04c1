package locktest

import (
	"sync"
	"testing/synctest"
)

// Eavesdrop returns a function that returns what has been published on Redisson's
// channels since it was called last.
func (w *World) Eavesdrop() (published func() []string) {
	sub := w.Server.NewSubscriber()
	sub.Psubscribe("redisson*")
	over := make(chan struct{})
	var mu sync.Mutex
	var all []string
	go func() {
		for {
			select {
			case m := <-sub.Pmessages():
				mu.Lock()
				all = append(all, m.Channel+" "+m.Message)
				mu.Unlock()
			case <-over:
				return
			}
		}
	}()
	w.Cleanup(func() {
		close(over)
		sub.Close()
	})
	return func() []string {
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		got := all
		all = nil
		return got
	}
}
