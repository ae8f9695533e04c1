package notify

import "sync"

// A Listener is one subscription. Its zero value is ready to use; its methods
// are safe for concurrent use.
type Listener struct {
	mu        sync.Mutex // guards everything below
	wake      chan struct{}
	stop      func()
	onForeign func()
	started   bool
	round     int // grows with each Start and Stop: what an earlier subscription still delivers is ignored
	confirmed bool
	asked     int // requests of ours that publish a message and are not answered
	own       int // messages of ours that are still to be heard
	unclear   int // that were in flight when the subscription was confirmed: these may be heard
	foreign   int // messages of others heard since Start
}

// Start subscribes, unless that was done already. subscribe gets the function
// to be called with every notice (true for a confirmed subscription, false for
// a message) and returns how to end it. onForeign is called for each message
// that is not ours, from the subscription's goroutine, and must not block.
func (l *Listener) Start(subscribe func(notice func(confirmed bool)) (stop func()), onForeign func()) {
	l.mu.Lock()
	if l.started {
		l.mu.Unlock()
		return
	}
	l.started, l.onForeign = true, onForeign
	l.round++
	round := l.round
	l.mu.Unlock()
	stop := subscribe(func(confirmed bool) { l.notice(round, confirmed) })
	l.mu.Lock()
	stopped := l.round != round
	if !stopped {
		l.stop = stop
	}
	l.mu.Unlock()
	if stopped { // meanwhile, when there was nothing to call yet
		stop()
	}
}

// Stop ends the subscription and reports whether there was one. Then the Listener
// can be started again.
func (l *Listener) Stop() bool {
	l.mu.Lock()
	started := l.started
	l.mu.Unlock()
	if stop := l.Detach(); stop != nil {
		stop()
	}
	return started
}

// Detach is Stop without the I/O: it returns what ends the subscription, or nil.
func (l *Listener) Detach() (stop func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	stop = l.stop
	l.stop, l.started, l.confirmed, l.own, l.unclear, l.onForeign = nil, false, false, 0, 0, nil
	l.round++
	return stop
}

// Wake delivers when there may be news. It is for one goroutine at a time.
func (l *Listener) Wake() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.channel()
}

// Nudge wakes the goroutine that waits. It is like a message that is not counted.
func (l *Listener) Nudge() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wakeLocked()
}

// Expect says that a request of ours that publishes a message is about to be sent.
// Answered says that the request is over, and whether it has published one.
func (l *Listener) Expect() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked++
	if l.confirmed {
		l.own++
	}
}

// Answered follows each Expect.
func (l *Listener) Answered(published bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked = max(0, l.asked-1)
	switch {
	case published:
	case l.own > 0:
		l.own--
	case l.unclear > 0:
		l.unclear--
	}
}

// Foreign returns how many messages of others have been heard.
func (l *Listener) Foreign() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.foreign
}

// Confirmed says whether the server has ever confirmed the subscription. It stays
// true when the subscription breaks: drivers tell only when it is there again.
func (l *Listener) Confirmed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.confirmed
}

func (l *Listener) notice(round int, confirmed bool) {
	l.mu.Lock()
	if round != l.round {
		l.mu.Unlock()
		return
	}
	var tell func()
	switch {
	case confirmed:
		// Messages that were in flight may be lost. They are not if the server has
		// confirmed this first.
		l.confirmed, l.own, l.unclear = true, 0, l.asked
	case l.own > 0:
		l.own--
	case l.unclear > 0: // ours, or somebody else's: it wakes, and is not counted
		l.unclear--
		tell = l.onForeign
	default:
		l.foreign++
		tell = l.onForeign
	}
	l.wakeLocked()
	l.mu.Unlock()
	if tell != nil {
		tell()
	}
}

func (l *Listener) wakeLocked() {
	select {
	case l.channel() <- struct{}{}:
	default:
	}
}

func (l *Listener) channel() chan struct{} {
	if l.wake == nil {
		l.wake = make(chan struct{}, 1)
	}
	return l.wake
}
