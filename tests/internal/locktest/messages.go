package locktest

import (
	"strings"
	"sync"
	"testing/synctest"
)

// Listen calls hear for each message on these channels, one after the other, until
// the test ends. hear must not ask the server, which may be waiting for hear. A
// channel with a star is a pattern; the server does not count who listens by one.
// If hear is nil, messages are dropped.
func (w *World) Listen(hear func(channel, text string), channels ...string) {
	sub := w.Server.NewSubscriber()
	w.Server.Lock() // who counts subscribers looks at their channels under this lock alone
	for _, channel := range channels {
		if strings.Contains(channel, "*") {
			sub.Psubscribe(channel)
		} else {
			sub.Subscribe(channel)
		}
	}
	w.Server.Unlock()
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
		// A client that is still there may publish just now. So nobody closes the channels
		// of sub: miniredis would send to a closed one.
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

// Messages returns a function that returns what has been published on a channel
// since it was called last.
func (w *World) Messages(channel string) (published func() []string) {
	return w.collect(func(_, text string) string { return text }, channel)
}

// Eavesdrop is Messages for all of Redisson's channels. Each message follows its
// channel's name.
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
