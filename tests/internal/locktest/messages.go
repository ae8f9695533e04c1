package locktest

import (
	"strings"
	"sync"
	"testing/synctest"
)

// Listen hands to hear, one after the other, what is published on these channels until the
// test ends. A channel with a star is a pattern: whoever listens by one is not counted. With
// a nil hear somebody is there who does nothing.
func (w *World) Listen(hear func(channel, text string), channels ...string) {
	sub := w.Server.NewSubscriber()
	for _, channel := range channels {
		if strings.Contains(channel, "*") {
			sub.Psubscribe(channel)
		} else {
			sub.Subscribe(channel)
		}
	}
	if hear == nil {
		hear = func(string, string) {}
	}
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case m := <-sub.Messages():
				hear(m.Channel, m.Message)
			case m := <-sub.Pmessages():
				hear(m.Channel, m.Message)
			case <-over:
				return
			}
		}
	}()
	w.Cleanup(func() {
		// A client that is still there may publish just now. miniredis would send to a channel that is closed.
		w.Server.Lock()
		for _, channel := range channels {
			sub.Unsubscribe(channel)
			sub.Punsubscribe(channel)
		}
		w.Server.Unlock()
		close(over)
		<-ended
	})
}

// Messages returns a function that returns what has been published on a channel since it
// was called last.
func (w *World) Messages(channel string) (published func() []string) {
	return w.collect(func(_, text string) string { return text }, channel)
}

// Eavesdrop is Messages for all of Redisson's channels. Each message follows its channel's name.
func (w *World) Eavesdrop() (published func() []string) {
	return w.collect(func(channel, text string) string { return channel + " " + text }, "redisson*")
}

func (w *World) collect(line func(channel, text string) string, channels ...string) func() []string {
	var mu sync.Mutex
	var all []string
	w.Listen(func(channel, text string) {
		mu.Lock()
		all = append(all, line(channel, text))
		mu.Unlock()
	}, channels...)
	return func() []string {
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		got := all
		all = nil
		return got
	}
}
