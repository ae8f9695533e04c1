package redlatch

import (
	"context"
	"encoding/json"
	"strconv"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/wire"
)

// Clients of redlatch can ask one another to let go. Each listens on a channel
// of its own, whose name follows from its owner fields.

const (
	controlPrefix = wire.Control + ":"
	revokePause   = time.Second // how long a holder has to confirm
)

// A controlMessage asks a client to revoke a hold, or confirms that.
type controlMessage struct {
	Op    string `json:"op"` // "revoke" or "revoked"
	Name  string `json:"name,omitempty"`
	Owner string `json:"owner,omitempty"`
	From  string `json:"from"`  // the asking client
	Nonce string `json:"nonce"` // of the question
}

// control is a client's end of its channel.
type control struct {
	c           *Client
	unsubscribe func()
	listening   func()        // closes heard; once
	heard       chan struct{} // closed when the subscription was first confirmed

	mu    sync.Mutex // guards what follows
	asked map[string]chan struct{}
	n     uint64
}

func (k *control) start(c *Client) {
	k.c = c
	k.asked = make(map[string]chan struct{})
	k.heard = make(chan struct{})
	k.listening = sync.OnceFunc(func() { close(k.heard) })
	k.unsubscribe = c.redis.Subscribe(controlPrefix+c.id, false, func(n Notice) {
		if n.Subscribed {
			k.listening()
			return
		}
		var m controlMessage
		if json.Unmarshal([]byte(n.Payload), &m) != nil {
			return // not ours
		}
		k.handle(m)
	})
}

func (k *control) stop() { k.unsubscribe() }

func (k *control) handle(m controlMessage) {
	switch m.Op {
	case "revoke":
		// The contexts end here and now, before the asker is told.
		k.c.dispossess(m.Name, m.Owner)
		m.Op = "revoked"
		from := m.From
		k.c.settle(func() { _, _ = k.send(context.Background(), from, m) })
	case "revoked":
		k.mu.Lock()
		answer := k.asked[m.Nonce]
		delete(k.asked, m.Nonce)
		k.mu.Unlock()
		if answer != nil {
			close(answer)
		}
	}
}

// send returns how many subscribers of the server it reached got the message.
func (k *control) send(ctx context.Context, to string, m controlMessage) (int64, error) {
	text, err := json.Marshal(m)
	if err != nil {
		return 0, err
	}
	o := op{c: k.c, script: publishScript, args: []string{controlPrefix + to, string(text)}, lease: k.c.cfg.WatchdogTimeout, stop: k.c.over, single: true}
	reply, err := o.run(ctx)
	return reply.Int, err
}

// dispossess ends a hold of this client and says whether there was one.
func (c *Client) dispossess(name, owner string) bool {
	t := c.lines.peek(name, owner)
	if t == nil {
		t = c.lines.ofGroup(name, owner)
	}
	return t != nil && t.lock.name == name && t.lose(LostRevoked)
}

// revoke asks the holder's client to end the hold and waits until it has, for
// a second at most. It reports whether the client has confirmed.
func (c *Client) revoke(ctx context.Context, name string, h Holder) bool {
	if h.Client == c.id {
		return c.dispossess(name, h.Owner)
	}
	k := &c.control
	answer := make(chan struct{})
	k.mu.Lock()
	k.n++
	nonce := strconv.FormatUint(k.n, 10)
	k.asked[nonce] = answer
	k.mu.Unlock()
	defer func() {
		k.mu.Lock()
		delete(k.asked, nonce)
		k.mu.Unlock()
	}()
	ctx, cancel := context.WithTimeout(ctx, revokePause)
	defer cancel()
	select {
	case <-k.heard: // a client that has just been made would miss the answer
	case <-ctx.Done():
	}
	heard, err := k.send(ctx, h.Client, controlMessage{Op: "revoke", Name: name, Owner: h.Owner, From: c.id, Nonce: nonce})
	if err == nil && heard == 0 && !c.traits.Cluster {
		return false // nobody listens: the holder is gone
	}
	select {
	case <-answer:
		return true
	case <-ctx.Done():
		return false
	case <-c.done:
		return false
	}
}

// ForceRelease releases the lock whoever holds it, and returns whether anybody
// held it. If the holder is a redlatch client it is asked to let go first: its
// hold is lost with reason LostRevoked, and its context has ended before the
// lock is given away, unless it does not answer within a second. A Redisson
// holder is not told by Redisson.
//
// Only the owner that ForceRelease found is dispossessed: if somebody else gets
// the lock meanwhile, that hold stays. Of a group lock the values are released;
// a redlatch client that holds one of them loses all that it has acquired with it.
func (l *Lock) ForceRelease(ctx context.Context) (bool, error) {
	all, err := l.stored(ctx)
	if err != nil {
		return false, err
	}
	info := l.only(all)
	if len(info.Holders) == 0 || (l.side == reading && len(writing.only(all).Holders) > 0) {
		return false, nil // who reads under his own write is a writer
	}
	args := []string{l.channel}
	revoked, asked := false, map[string]bool{}
	for _, h := range info.Holders {
		args = append(args, l.seen(h)...)
		if h.Redlatch && !asked[h.Owner] {
			asked[h.Owner] = true // once for all its values of a group
			if l.c.revoke(ctx, l.name, h) {
				revoked = true
			}
		}
	}
	o := op{c: l.c, script: l.kind.force, keys: l.keys, args: args, lease: l.c.cfg.WatchdogTimeout, stop: l.c.done}
	reply, err := o.run(ctx)
	if err != nil {
		return revoked, err
	}
	return revoked || o.unknown || reply.Int == 1, nil
}
