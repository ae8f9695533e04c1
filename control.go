package redlatch

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"sync"
	"time"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/lua"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/script"
	"github.com/redlatch/redlatch/internal/wire"
	"github.com/redlatch/redlatch/internal/worker"
)

// Clients of redlatch can ask one another to let go. Each listens on a channel
// of its own, whose name follows from its owner fields.
//
// Whoever may use locks at all may publish there, whatever the names of the locks
// that he may use. So a message proves nothing: who is asked looks for the word that
// the asker has left at a key that belongs to that lock.

const (
	controlPrefix = wire.Control + ":"
	revokePause   = time.Second     // how long a holder has to confirm
	revokeTTL     = 5 * time.Second // how long the word stands
	// mostRevokes is how many messages wait to be looked at. Those beyond are
	// somebody's who floods; an asker goes on without an answer.
	mostRevokes = 64
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
	revokes     *worker.Queue

	mu    sync.Mutex // guards asked
	asked map[string]chan struct{}
}

func (k *control) start(c *Client) {
	k.c = c
	k.asked = make(map[string]chan struct{})
	k.heard = make(chan struct{})
	k.revokes = worker.NewQueue(mostRevokes, func(int) {})
	k.listening = sync.OnceFunc(func() { close(k.heard) })
	k.unsubscribe = c.server.Driver.Subscribe(controlPrefix+c.id, false, func(n driver.Notice) {
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

func (k *control) stop() {
	k.unsubscribe()
	k.revokes.Close()
}

func (k *control) handle(m controlMessage) {
	switch m.Op {
	case "revoke":
		k.revokes.Add(func() { k.revoke(m) })
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

// revoke ends a hold, if there is one and whoever asks may, and then tells the asker.
func (k *control) revoke(m controlMessage) {
	t := k.c.holder(m.Name, m.Owner)
	if t == nil {
		return
	}
	asked := []string{wire.Prefix(wire.Revoke, m.Name)}
	o := k.c.question(lua.ControlAsked, asked...)
	o.Args, o.Until = []string{m.Owner}, time.Now().Add(revokeTTL)
	if reply, err := o.Run(context.Background()); err != nil || reply.Int != 1 || !t.lose(LostRevoked) {
		return
	}
	from := m.From
	m.Op = "revoked"
	answer := k.message(lua.ControlAnswer, from, m)
	answer.Keys, answer.Args = asked, append(answer.Args, m.Owner)
	_, _ = answer.Send(context.Background())
}

// message prepares a request that sends m to a client, to be sent as it is: these
// channels are classic, also where those of locks are sharded.
func (k *control) message(s *script.Script, to string, m controlMessage) request.Call {
	text, _ := json.Marshal(m) //nolint:errchkjson // strings always can
	return request.Call{Server: k.c.server, Script: s, Args: []string{controlPrefix + to, string(text)}, Lease: k.c.cfg.WatchdogTimeout, Stop: k.c.server.Over, Single: true}
}

// holder returns the tenure of this client that has an owner id of a lock, or nil.
func (c *Client) holder(name, owner string) *tenure {
	if t := c.lines.peek(name, owner); t != nil && t.lock.name == name {
		return t
	}
	return c.lines.ofGroup(name, owner)
}

// revoke asks the holder's client to end the hold and waits until it has, for
// a second at most. It reports whether the client has confirmed.
func (c *Client) revoke(ctx context.Context, name string, h Holder) bool {
	if h.Client == c.id {
		t := c.holder(name, h.Owner)
		return t != nil && t.lose(LostRevoked)
	}
	k := &c.control
	answer, nonce := make(chan struct{}), rand.Text()
	k.mu.Lock()
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
	ask := k.message(lua.ControlAsk, h.Client, controlMessage{Op: "revoke", Name: name, Owner: h.Owner, From: c.id, Nonce: nonce})
	ask.Keys, ask.Args = []string{wire.Prefix(wire.Revoke, name)}, append(ask.Args, h.Owner, wire.Millis(revokeTTL))
	heard, err := ask.Send(ctx)
	if err == nil && heard.Int == 0 && !c.server.Traits.Cluster {
		return false // nobody listens: the holder is gone
	}
	select {
	case <-answer:
		return true
	case <-ctx.Done():
		return false
	case <-c.server.Done:
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
	o := request.Call{Server: l.c.server, Script: l.kind.force, Keys: l.keys, Args: args, Lease: l.c.cfg.WatchdogTimeout, Stop: l.c.server.Done}
	reply, err := o.Run(ctx)
	if err != nil {
		return revoked, err
	}
	// A client that was asked may have let go later than its answer was waited for.
	return len(asked) > 0 || o.Unknown || reply.Int == 1, nil
}
