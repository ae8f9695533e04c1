package census

import (
	"context"
	"sync"
	"time"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/request"
)

const (
	// mostKnown is how many clients are remembered.
	mostKnown = 1000
	// askAgain is how long after it was not found a client's note is looked for again: it
	// writes it a second or two after its first owner id. Whoever waits for a lock is refused
	// less often than that, unless others pass the lock on.
	askAgain = time.Second
	// mostBackground is for how long a note is waited for that nobody waits for.
	mostBackground = 3 * time.Second
)

// names are who clients have noted they are, as far as this client has read it: what a client
// has noted it never changes. What they say in answers does not count: anybody can answer.
type names struct {
	server *request.Server
	own    string // the client's own id,
	self   name   // which it need not ask for

	mu     sync.Mutex // guards what follows
	known  map[string]name
	asking map[string]bool // the clients whose notes are being read in the background
}

type name struct {
	Identity

	by    string
	until time.Time // when it is worth to ask again; zero: never, it is known
}

func newNames(server *request.Server, id string, who Identity) *names {
	return &names{server: server, own: id, self: name{Identity: who, by: who.String()}, known: map[string]name{}, asking: map[string]bool{}}
}

// learn remembers who a client is. If the note is empty, it was not there.
func (n *names) learn(client string, who Identity) {
	x := name{Identity: who, by: who.String()}
	if !who.Known() {
		x.until = time.Now().Add(askAgain)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	before, found := n.known[client]
	if found && before.Known() {
		return // by somebody who asked at the same time
	}
	for old := range n.known {
		if found || len(n.known) < mostKnown {
			break
		}
		delete(n.known, old) // any
	}
	n.known[client] = x
}

// look returns what is known of a client, and whether there is nothing to ask now.
func (n *names) look(client string) (x name, enough bool) {
	if client == n.own {
		return n.self, true
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	x, found := n.known[client]
	return x, found && (x.until.IsZero() || time.Now().Before(x.until))
}

// By returns who a client of redlatch is, as its Identity is printed; empty if that is not known.
// It asks nobody.
func (k *Census) By(client string) string {
	x, _ := k.names.look(client)
	return x.by
}

// Learn has it found out in the background who a client of redlatch is, if that is not known.
// Whoever wants to know it of the same client meanwhile, or soon after, shares the one request.
func (k *Census) Learn(client string) {
	n := k.names
	if _, enough := n.look(client); enough || !n.begin(client) {
		return
	}
	n.server.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), mostBackground)
		defer cancel()
		who, err := readNote(ctx, n.server, client)
		if err != nil {
			who = Identity{}
		}
		n.learn(client, who)
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.asking, client)
	})
}

// begin says whether the caller may ask who a client is: nobody else is just asking that.
func (n *names) begin(client string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	may := !n.asking[client]
	n.asking[client] = true
	return may
}

// Introducer returns a function that says who clients of redlatch are, and reads what is not
// known, unless somebody has just looked for it. It does so for so many clients and for so long at most, and no longer when the server
// has not answered: what is not known then stays empty. The caller calls end.
func (k *Census) Introducer(ctx context.Context, most int, limit time.Duration) (who func(client string) Identity, end func()) {
	ctx, end = context.WithTimeout(ctx, limit)
	return func(client string) Identity {
		x, enough := k.names.look(client)
		if enough || most <= 0 {
			return x.Identity
		}
		most--
		i, err := readNote(ctx, k.server, client)
		switch {
		case err == nil:
			k.names.learn(client, i)
		case !driver.Failure(err).Permanent():
			most = 0
		}
		return i
	}, end
}
