package census

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/request"
)

const (
	// mostKnown is how many clients are remembered.
	mostKnown = 1000
	// askAgain is how long after it was not found a client's note is looked for again,
	// at the earliest: the client writes it a second or two after its first owner id.
	askAgain = time.Second
	// mostPause is how long after that at the latest. Some clients never write a note:
	// a command that is soon over, a user without the right. Others write it late,
	// because the server gave them no answer.
	mostPause = 32 * time.Second
	// refusedFor is for how long a refusal is believed that lasts until somebody acts:
	// that the user may not read notes.
	refusedFor = 5 * time.Minute
	// mostBackground is for how long a note is waited for that nobody waits for.
	mostBackground = 3 * time.Second
)

// names are who clients have noted they are, as far as this client has read it:
// what a client has noted it never changes. What they say in answers does not
// count: anybody can answer.
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

	by string
	// Of a client that is not known: when its note was first looked for, when it was
	// last, and when a caller that is refused has it looked for again.
	first, last, again time.Time
}

// recent says that there is nothing to ask: the client is known, or its note has
// just been looked for.
func (x name) recent() bool { return x.Known() || time.Since(x.last) < askAgain }

func newNames(server *request.Server, id string, who Identity) *names {
	return &names{server: server, own: id, self: name{Identity: who, by: who.String()}, known: map[string]name{}, asking: map[string]bool{}}
}

// learn remembers who a client is, or why its note could not be read. If the
// identity is empty, there was no note. Then the next caller that is refused asks
// again after as long as the note has been overdue by now, so a wait of whatever
// length sends few questions.
func (ns *names) learn(client string, who Identity, err error) {
	now := time.Now()
	ns.mu.Lock()
	defer ns.mu.Unlock()
	x, found := ns.known[client]
	switch {
	case x.Known():
		return // somebody asked at the same time
	case !found:
		x.first = now
	}
	x.Identity, x.by, x.last = who, who.String(), now
	x.again = now.Add(cmp.Or(RefusedFor(err), min(max(now.Sub(x.first)-2*noteDelay, askAgain), mostPause)))
	for old := range ns.known {
		if found || len(ns.known) < mostKnown {
			break
		}
		delete(ns.known, old) // any
	}
	ns.known[client] = x
}

// look returns what is known of a client.
func (ns *names) look(client string) name {
	if client == ns.own {
		return ns.self
	}
	ns.mu.Lock()
	defer ns.mu.Unlock()
	return ns.known[client]
}

// By returns who a client of redlatch is, as its Identity is printed; empty if
// that is not known. It asks nobody.
func (k *Census) By(client string) string {
	return k.names.look(client).by
}

// Learn has it found out in the background who a client of redlatch is, if that is
// not known. Whoever wants to know it of the same client meanwhile, or soon after,
// shares the one request. A client that has no note is asked about less and less
// often.
func (k *Census) Learn(client string) {
	ns := k.names
	if x := ns.look(client); x.Known() || time.Now().Before(x.again) || !ns.begin(client) {
		return
	}
	ns.server.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), mostBackground)
		defer cancel()
		who, err := readNote(ctx, ns.server, client)
		ns.learn(client, who, err)
		ns.mu.Lock()
		defer ns.mu.Unlock()
		delete(ns.asking, client)
	})
}

// begin says whether the caller may ask who a client is: nobody else is just
// asking that.
func (ns *names) begin(client string) bool {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	may := !ns.asking[client]
	ns.asking[client] = true
	return may
}

// Introducer returns a function that says who clients of redlatch are, and reads
// what is not known, unless somebody has just looked for it. It does so for so
// many clients and for so long at most, and no longer when the server has not
// answered: what is not known then stays empty. The caller calls end.
func (k *Census) Introducer(ctx context.Context, most int, limit time.Duration) (who func(client string) Identity, end func()) {
	ctx, end = context.WithTimeout(ctx, limit)
	return func(client string) Identity {
		x := k.names.look(client)
		if x.recent() || most <= 0 {
			return x.Identity
		}
		most--
		i, err := readNote(ctx, k.server, client)
		switch {
		case err == nil:
			k.names.learn(client, i, nil)
		case !driver.Failure(err).Permanent():
			most = 0
		}
		return i
	}, end
}
