package census

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/claim"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/wire"
)

// A caller that waits in vain for a lock hears what its holder says of itself. For
// that its client asks the holder's client, and no other: by the channel of that
// one, and is answered by its own.

const (
	// inquireAgain is how long after a question about a lock the next one about it is
	// sent, at the earliest.
	inquireAgain = answerPause
	// mostSaid is how many such questions a client answers in a second. Whoever sends
	// more floods.
	mostSaid = 100
	// forgetAfter is how long after it an answer is no news: a lock keeps its owner id
	// while it passes within a process.
	forgetAfter = 30 * time.Second
	// mostHolders is of how many locks it is remembered who said what.
	mostHolders = 1000
)

// What an inquiry is.
const (
	opHold = "hold" // a question
	opHeld = "held" // an answer
)

// An inquiry is a question about one hold to the client that has it, or its
// answer.
type inquiry struct {
	Op    string          `json:"op"`
	From  string          `json:"from,omitempty"` // the client that asks
	Nonce string          `json:"nonce"`          // of the question
	Name  string          `json:"name,omitempty"` // of the lock that is asked about
	Raw   []byte          `json:"raw,omitempty"`  // the name, if that is no text
	Owner string          `json:"owner,omitempty"`
	Claim json.RawMessage `json:"claim,omitempty"` // of an answer
}

// holders are what other clients have said of their holds that callers of this
// client have waited for.
type holders struct {
	server *request.Server
	own    string // the client's id
	held   func(name, owner string) (claim.Claim, bool)

	mu     sync.Mutex      // guards what follows
	said   map[string]said // by the lock's name in Redis
	quiet  time.Time       // until then nothing is asked: the user may not
	second time.Time       // when the second began of which told tells
	told   int             // answers
}

// said is what has been said of the latest owner of a lock that was asked about.
type said struct {
	claim.Claim

	asked    time.Time // when the question was sent
	answered time.Time // when the latest answer came
	nonce    string    // of that, while it has no answer
	inFlight bool      // it is on its way to the server
}

func newHolders(o *Options) *holders {
	return &holders{server: o.Server, own: o.ID, held: o.Held, said: map[string]said{}}
}

// Inquire has the client asked what it says of its hold that has a lock as that
// owner. The question is sent in the background, and not if there has just been
// one about the lock.
func (k *Census) Inquire(name, owner string) {
	h := k.holders
	client, redlatch := wire.ClientOf(owner)
	if !redlatch || client == h.own {
		return
	}
	q := inquiry{Op: opHold, From: h.own, Nonce: rand.Text(), Owner: owner}
	q.Name, q.Raw = wire.SplitName(name)
	text, _ := json.Marshal(q) //nolint:errchkjson // texts always can
	if len(text) > mostQuestion || !h.begin(name, owner, q.Nonce) {
		return
	}
	h.server.Go(func() { h.ask(client, name, string(text)) })
}

// begin notes a question, unless it is not to be sent.
func (h *holders) begin(name, owner, nonce string) bool {
	now := time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	s, found := h.said[name]
	if now.Before(h.quiet) || s.inFlight || (found && now.Sub(s.asked) < inquireAgain) {
		return false
	}
	if s.Owner != owner {
		s = said{Claim: claim.Claim{Owner: owner}}
	}
	s.asked, s.nonce, s.inFlight = now, nonce, true
	for old := range h.said {
		if found || len(h.said) < mostHolders {
			break
		}
		delete(h.said, old) // any
	}
	h.said[name] = s
	return true
}

// ask sends a question. Whether it fails is no news to anybody: the caller hears
// less.
func (h *holders) ask(client, name, text string) {
	ctx, cancel := context.WithTimeout(context.Background(), mostBackground)
	defer cancel()
	call := sending(h.server, wire.Control+":"+client, text)
	_, err := call.Send(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	if s, found := h.said[name]; found {
		s.inFlight = false
		h.said[name] = s
	}
	if d := RefusedFor(err); d > 0 && !call.Left {
		h.quiet = time.Now().Add(d)
	}
}

// Hear takes what comes by this client's own channel. It does not block.
func (k *Census) Hear(text string) {
	var q inquiry
	if len(text) > mostQuestion || json.Unmarshal([]byte(text), &q) != nil || !isKey(q.Nonce) {
		return
	}
	switch q.Op {
	case opHold:
		k.holders.answer(q)
	case opHeld:
		k.holders.note(q)
	}
}

// answer tells a client what it has asked, if it is so.
func (h *holders) answer(q inquiry) {
	if !isClient(q.From) || !h.mayTell() {
		return
	}
	h.server.Go(func() {
		c, held := h.held(wire.JoinName(q.Name, q.Raw), q.Owner)
		if !held {
			return
		}
		a := inquiry{Op: opHeld, Nonce: q.Nonce, Claim: tell(&c, time.Now(), false)}
		text, _ := json.Marshal(a)
		call := sending(h.server, wire.Control+":"+q.From, string(text))
		_, _ = call.Send(context.Background()) // whoever asks will ask again
	})
}

func (h *holders) mayTell() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now := time.Now(); now.Sub(h.second) >= time.Second {
		h.second, h.told = now, 0
	}
	h.told++
	return h.told <= mostSaid
}

// note notes an answer, if that is what was asked.
func (h *holders) note(a inquiry) {
	now := time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, s := range h.said {
		if s.nonce != a.Nonce {
			continue
		}
		client, _ := wire.ClientOf(s.Owner)
		c, ok := read(a.Claim, client)
		if !ok || c.Name != name || c.Owner != s.Owner || c.Waits || c.Lost != "" {
			return
		}
		s.answered, s.nonce, s.Since, s.Renewed, s.Note = now, "", now.Add(-c.For), c.Renewed, c.Note
		h.said[name] = s
		return
	}
}

// Hold returns what is known of a hold of a lock by its owner id: what this client
// has itself, or what another one has said when it was asked last, if that was
// within forgetAfter. Its note is in a form that can be printed.
func (k *Census) Hold(name, owner string) (claim.Claim, bool) {
	h := k.holders
	if c, held := h.held(name, owner); held {
		c.Note = wire.Text(c.Note)
		return c, true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.said[name]
	return s.Claim, owner != "" && s.Owner == owner && !s.answered.IsZero() && time.Since(s.answered) < forgetAfter
}
