package census

import (
	"iter"

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
	Claims    iter.Seq[claim.Claim]
}

// A Census is a client's part in it: it answers, and asks.
type Census struct {
	server      *request.Server
	inspector   *inspect.Inspector
	note        *note
	answerer    *answerer
	unsubscribe func()
}

// Start listens to questions. The caller calls Begin when the server has answered
// something, and Stop.
func Start(o Options) *Census {
	k := &Census{
		server: o.Server, inspector: o.Inspector, note: newNote(o.Server, o.ID, o.Identity),
		answerer: &answerer{server: o.Server, id: o.ID, who: o.Identity, sites: o.Sites, claims: o.Claims},
	}
	k.unsubscribe = o.Server.Driver.Subscribe(wire.Asked, false, func(n driver.Notice) { k.answerer.hear(n) })
	return k
}

// Begin says that the server has answered something. Soon the client notes who it is.
func (k *Census) Begin() { k.note.begin() }

// Stop ends that.
func (k *Census) Stop() {
	k.unsubscribe()
	k.answerer.stop()
	k.note.stop()
}
