package census

import (
	"context"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/lua"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/wire"
)

const (
	noteTTL     = 15 * time.Minute
	noteRefresh = 5 * time.Minute
	// noteDelay is how long after its first owner id a client notes who it is, and up
	// to twice that: a command that is soon over writes nothing, and of a fleet that
	// starts at once not all do so at a time.
	noteDelay = time.Second
	// noteAgain is when it tries again if the server gave no answer: it may not be up
	// yet.
	noteAgain = 30 * time.Second
)

// A note is who a client is, in Redis.
type note struct {
	server *request.Server
	keys   []string
	text   string

	mu     sync.Mutex  // guards what follows
	timer  *time.Timer // nil until begin
	closed bool
}

func newNote(server *request.Server, id string, who Identity) *note {
	return &note{server: server, keys: []string{wire.ClientKey(id)}, text: who.note()}
}

// begin has the note written soon, and kept up. It is called with the client's
// first owner id: a client that only looks makes none, so nobody finds it in
// Redis, and it writes nothing.
func (n *note) begin() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.closed && n.timer == nil {
		n.timer = time.AfterFunc(noteDelay+rand.N(noteDelay), n.write) //nolint:gosec // jitter
	}
}

// write writes the note once.
func (n *note) write() {
	call := request.Call{
		Server: n.server, Script: lua.ClientNote, Keys: n.keys, Args: []string{n.text, wire.Millis(noteTTL)},
		Lease: n.server.Length, Stop: n.server.Quit, Single: true,
	}
	next := noteRefresh
	if _, err := call.Send(context.Background()); err != nil && !driver.Failure(err).Permanent() {
		next = noteAgain
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.closed {
		n.timer.Reset(request.Jittered(next))
	}
}

// stop ends that. The note stays until its time is over: a client may leave locks
// behind, and Close waits for no request of which nobody needs the outcome.
func (n *note) stop() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	if n.timer != nil {
		n.timer.Stop()
	}
}

// readNote returns what a client says who it is; nothing if it does not.
func readNote(ctx context.Context, server *request.Server, client string) (Identity, error) {
	call := server.Question(lua.ClientRead, []string{wire.ClientKey(client)})
	call.Args, call.Single = []string{strconv.Itoa(mostIdentity)}, true
	reply, err := call.Send(ctx)
	if err != nil {
		return Identity{}, err
	}
	i, _ := readIdentity(reply.Str)
	return i, nil
}
