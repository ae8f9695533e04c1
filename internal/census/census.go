package census

import (
	"context"
	"iter"
	"sync"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/claim"
	"github.com/redlatch/redlatch/internal/inspect"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/wire"
)

// Options say who a client is, and what it tells. All are needed.
type Options struct {
	Server    *request.Server
	Inspector *inspect.Inspector
	ID        string
	Identity  Identity
	Sites     bool // whether the places of the program are told
	// Claims yields what callers hold and wait for, and the contexts of those who
	// wait; Above returns the owner ids of the holds that such a context descends
	// from.
	Claims iter.Seq2[claim.Claim, context.Context]
	// Held returns what this client holds of the lock with a name in Redis, as an
	// owner id.
	Held  func(name, owner string) (claim.Claim, bool)
	Above func(context.Context) []string
	// PossibleDeadlock is told of each circle of waits that is found, with names as
	// users have them.
	PossibleDeadlock func(circle []Wait)
}

// A Census is a client's part in it: it answers, and asks.
type Census struct {
	server      *request.Server
	inspector   *inspect.Inspector
	note        *note
	names       *names
	holders     *holders
	answerer    *answerer
	unsubscribe func()
	listening   chan struct{} // closed when the channel of questions is heard
	vigil       vigil

	possibleDeadlock func(circle []Wait)
}

// Start listens to questions. The caller calls Stop.
func Start(o Options) *Census {
	k := &Census{
		server: o.Server, inspector: o.Inspector, note: newNote(o.Server, o.ID, o.Identity),
		names: newNames(o.Server, o.ID, o.Identity), listening: make(chan struct{}), possibleDeadlock: o.PossibleDeadlock,
		holders:  newHolders(&o),
		answerer: &answerer{server: o.Server, id: o.ID, who: o.Identity, sites: o.Sites, claims: o.Claims, above: o.Above},
	}
	listening := sync.OnceFunc(func() { close(k.listening) })
	k.unsubscribe = o.Server.Driver.Subscribe(wire.Asked, false, func(n driver.Notice) {
		if n.Subscribed {
			listening()
		} else {
			k.answerer.hear(n.Payload)
		}
	})
	return k
}

// Note has it noted soon who the client is, and kept up. It does not block.
func (k *Census) Note() { k.note.begin() }

// Stop ends that.
func (k *Census) Stop() {
	k.unsubscribe()
	k.answerer.stop()
	k.note.stop()
}
