package redlatchrueidis

import (
	"context"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/adapter"
)

// topics are those of a driver.
type topics struct {
	wg sync.WaitGroup // their goroutines

	mu     sync.Mutex // guards all below
	m      map[topicKey]*topic
	broken bool // a connection was lost since the last confirmation
}

type topicKey struct {
	channel string
	sharded bool
}

// A topic is a channel that somebody listens to. One goroutine receives for all
// its listeners.
type topic struct {
	d   *Driver
	key topicKey

	// Guarded by topics.mu.
	listeners adapter.Listeners
	confirmed bool
	since     time.Time // when somebody began to wait for the confirmation that is missing
	failures  int       // since the last confirmation
	leave     context.CancelFunc
}

// Subscribe implements [driver.Redis].
func (d *Driver) Subscribe(channel string, sharded bool, h func(driver.Notice)) (stop func()) {
	l := adapter.NewListener(h)
	key := topicKey{channel, sharded}
	d.topics.mu.Lock()
	defer d.topics.mu.Unlock()
	if d.ctx.Err() != nil {
		return func() {}
	}
	t := d.topics.m[key]
	if t == nil {
		t = &topic{d: d, key: key, leave: func() {}}
		d.topics.m[key] = t
		d.topics.wg.Go(t.run)
	}
	if len(t.listeners) == 0 {
		t.since = time.Now()
	}
	t.listeners = t.listeners.With(l)
	if t.confirmed {
		go l.Confirmed(false) // not from here: our caller may hold what h wants
	}
	return func() { t.drop(l) }
}

// Listeners implements [driver.Sharer].
func (d *Driver) Listeners(channel string, sharded bool) int {
	d.topics.mu.Lock()
	defer d.topics.mu.Unlock()
	if t := d.topics.m[topicKey{channel, sharded}]; t != nil {
		return len(t.listeners)
	}
	return 0
}

// Unconfirmed implements [driver.Subscriber].
func (d *Driver) Unconfirmed(after time.Duration) (n int) {
	d.topics.mu.Lock()
	defer d.topics.mu.Unlock()
	for _, t := range d.topics.m {
		if len(t.listeners) > 0 && !t.confirmed && time.Since(t.since) >= after {
			n++
		}
	}
	return n
}

func (t *topic) drop(l *adapter.Listener) {
	l.Stop()
	t.d.topics.mu.Lock()
	defer t.d.topics.mu.Unlock()
	t.listeners = t.listeners.Without(l)
	if len(t.listeners) == 0 {
		t.leave()
		t.confirmed = false
	}
}

// stopAll ends all topics, for Close.
func (d *Driver) stopAll() {
	d.topics.mu.Lock()
	defer d.topics.mu.Unlock()
	for _, t := range d.topics.m {
		t.leave()
	}
}

// begin returns the context of the next stretch of listening, or nil if nobody
// listens any more, and then the topic is gone.
func (t *topic) begin() context.Context {
	t.d.topics.mu.Lock()
	defer t.d.topics.mu.Unlock()
	if len(t.listeners) == 0 || t.d.ctx.Err() != nil {
		delete(t.d.topics.m, t.key)
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.leave = cancel
	return ctx
}

func (t *topic) run() {
	for {
		ctx := t.begin()
		if ctx == nil {
			return
		}
		t.listen(ctx)
		t.leave()
	}
}

// listen subscribes, again and again, until ctx ends.
func (t *topic) listen(ctx context.Context) {
	for ctx.Err() == nil {
		client, err := t.d.subs.get(ctx)
		if err == nil {
			err = t.receive(ctx, client)
		}
		pause := t.ended(err)
		if ctx.Err() != nil {
			return
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
}

// receive listens until ctx ends or something fails. A slot that moves to
// another node ends it without an error.
func (t *topic) receive(ctx context.Context, client rueidis.Client) error {
	var wire rueidis.CommandClient // the connection, of which client may have several
	hooked := rueidis.WithOnSubscriptionHook(ctx, func(s rueidis.PubSubSubscription) {
		if s.Kind == "subscribe" || s.Kind == "ssubscribe" {
			t.confirm(ctx)
		}
	})
	hooked = rueidis.WithOnReceiveReturnHook(hooked, func(err error, c rueidis.CommandClient) error {
		wire = c
		return err
	})
	err := client.Receive(hooked, subscribe(client, t.key), func(m rueidis.PubSubMessage) {
		for _, l := range t.current(ctx) {
			l.Message(m.Message)
		}
	})
	// To unsubscribe in the hook could block for ever: until Receive has returned,
	// messages that nobody takes can stand in front of the answer.
	if ctx.Err() != nil && wire != nil && t.d.ctx.Err() == nil {
		wire.Do(context.Background(), unsubscribe(wire, t.key))
	}
	return err
}

func subscribe(client rueidis.Client, key topicKey) rueidis.Completed {
	if key.sharded {
		return client.B().Ssubscribe().Channel(key.channel).Build()
	}
	// At replicas nobody counts who listens.
	return atAnyPrimary(client.B().Subscribe().Channel(key.channel).Build())
}

func unsubscribe(client rueidis.CommandClient, key topicKey) rueidis.Completed {
	if key.sharded {
		return client.B().Sunsubscribe().Channel(key.channel).Build()
	}
	return client.B().Unsubscribe().Channel(key.channel).Build()
}

// current returns who is to hear a message, as long as ctx has not ended: who
// has joined since then waits for the next stretch.
func (t *topic) current(ctx context.Context) adapter.Listeners {
	t.d.topics.mu.Lock()
	defer t.d.topics.mu.Unlock()
	if ctx.Err() != nil {
		return nil
	}
	return t.listeners
}

// confirm passes on the server's word that the channel is subscribed.
func (t *topic) confirm(ctx context.Context) {
	t.d.topics.mu.Lock()
	if ctx.Err() != nil { // about to be unsubscribed
		t.d.topics.mu.Unlock()
		return
	}
	again := t.confirmed // a foreign client that reconnects by itself
	t.confirmed, t.failures = true, 0
	back := t.d.topics.broken || again
	t.d.topics.broken = false
	listeners := t.listeners
	t.d.topics.mu.Unlock()
	if back {
		t.d.breaks.All()
	}
	for _, l := range listeners {
		l.Confirmed(true)
	}
}

// ended notes that the channel is not subscribed any more, and returns how long
// to wait before the next attempt.
func (t *topic) ended(err error) time.Duration {
	t.d.topics.mu.Lock()
	defer t.d.topics.mu.Unlock()
	if t.confirmed && err != nil && t.d.subs.foreign {
		t.d.topics.broken = true // nobody else notices
	}
	if t.confirmed {
		t.confirmed, t.since = false, time.Now()
	}
	t.failures++
	return adapter.Pause(t.failures - 1)
}

// lost reports a broken connection.
func (d *Driver) lost() {
	d.topics.mu.Lock()
	d.topics.broken = true
	d.topics.mu.Unlock()
	d.breaks.All()
}
