package census

import (
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/claim"
	"github.com/redlatch/redlatch/internal/lua"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/wire"
)

const (
	// answerPause is between two answers.
	answerPause = time.Second
	// mostParsed is how many messages are looked at in such a time. Whoever sends more
	// floods, and others may get no answer for that second.
	mostParsed = 32
	// mostAsked is how many different filters one answer is for.
	mostAsked = 8
	// mostKept is how many claims of a sort are kept while they are gathered: more do
	// not fit into an answer.
	mostKept = mostAnswer / leastClaim
	// leastClaim is about how many bytes the shortest claim has.
	leastClaim = 64
)

// An answerer is a client's end of the channel of questions.
type answerer struct {
	server *request.Server
	id     string
	who    Identity
	sites  bool
	claims iter.Seq2[claim.Claim, context.Context]
	above  func(context.Context) []string

	mu     sync.Mutex // guards what follows
	since  time.Time  // when the second began of which parsed tells
	parsed int
	asked  []filter // what is to be answered
	keys   []string // of the questions that ask it
	due    bool     // there is a timer for that, or the answer is on its way
	timer  *time.Timer
	last   time.Time // when the last answer was sent
	closed bool
}

// hear takes what comes by the channel. It does not block.
func (a *answerer) hear(text string) {
	if len(text) > mostQuestion || !a.mayParse() {
		return
	}
	if q, ok := readQuestion(text); ok {
		a.add(q)
	}
}

func (a *answerer) mayParse() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now := time.Now(); now.Sub(a.since) >= answerPause {
		a.since, a.parsed = now, 0
	}
	a.parsed++
	return !a.closed && a.parsed <= mostParsed
}

// add adds a question to those that are answered together.
func (a *answerer) add(q question) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed || len(a.keys) == mostKeys {
		return
	}
	if !slices.ContainsFunc(a.asked, func(f filter) bool { return f.is(&q.filter) }) {
		if len(a.asked) == mostAsked {
			return
		}
		a.asked = append(a.asked, q.filter)
	}
	if !slices.Contains(a.keys, q.Key) {
		a.keys = append(a.keys, q.Key)
	}
	if !a.due {
		a.planLocked(rand.N(time.Duration(q.Spread)*time.Millisecond + 1)) //nolint:gosec // jitter
	}
}

// planLocked has an answer sent after d, or when a second has passed since the
// last one.
func (a *answerer) planLocked(d time.Duration) {
	a.due = true
	if !a.last.IsZero() {
		d = max(d, answerPause-time.Since(a.last))
	}
	if a.timer == nil {
		a.timer = time.AfterFunc(d, a.answer)
		return
	}
	a.timer.Reset(d)
}

// answer sends one answer to all who have asked. It runs on the timer's goroutine,
// never twice at a time.
func (a *answerer) answer() {
	a.mu.Lock()
	asked, keys := a.asked, a.keys
	a.asked, a.keys = nil, nil
	closed := a.closed
	a.mu.Unlock()
	if closed {
		return
	}
	call := sending(a.server, wire.Answers, a.compose(asked, keys))
	_, _ = call.Send(context.Background()) // whoever asks will ask again
	a.mu.Lock()
	defer a.mu.Unlock()
	a.due, a.last = false, time.Now() // however long it took
	if len(a.asked) > 0 && !a.closed {
		a.planLocked(0)
	}
}

// compose writes the answer to some questions: what is the worst comes first,
// losses, and then waits and holds in turn.
func (a *answerer) compose(asked []filter, keys []string) string {
	now := time.Now()
	var held, waiting oldest
	var lost []kept
	rest := 0
	for c, of := range a.claims {
		switch {
		case !slices.ContainsFunc(asked, func(f filter) bool { return f.fits(c.Name, c.Owner) }):
		case c.Lost != "":
			lost = append(lost, kept{Claim: c})
		case c.Rest() > 0:
			rest += c.Rest()
		case c.Waits:
			waiting.add(kept{c, of})
		default:
			held.add(kept{Claim: c})
		}
	}
	ans := answer{V: version, Client: a.id, Identity: a.who, For: keys, Left: len(lost) + held.n + waiting.n + rest}
	if s, ok := a.server.Driver.(driver.Sharer); ok {
		if n := s.Listeners(wire.Asked, false); n > 1 {
			ans.Sharers = n
		}
	}
	head, _ := json.Marshal(ans) //nolint:errchkjson // texts and numbers always can
	room := mostAnswer - len(head) - len(`,"claims":[]`)
	least := room - mostAnswer/4 // what losses leave for the others
	for _, c := range append(lost, inTurn(waiting.cut(), held.cut())...) {
		if c.Lost != "" && room < least {
			continue
		}
		if room < leastClaim {
			break
		}
		if c.of != nil {
			c.Under = a.above(c.of)
		}
		text := tell(&c.Claim, now, a.sites)
		if len(text) > mostClaim || len(text)+1 > room {
			continue // a shorter one may fit
		}
		room -= len(text) + 1
		ans.Claims = append(ans.Claims, text)
		ans.Left--
	}
	text, _ := json.Marshal(ans) //nolint:errchkjson // as above
	return string(text)
}

func (a *answerer) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	if a.timer != nil {
		a.timer.Stop()
	}
}

// oldest keeps the claims that have lasted longest.
type oldest struct {
	all []kept
	n   int // of how many
}

// kept is a claim with the context of the waiter, which is asked for Under if
// there is room for the claim.
type kept struct {
	claim.Claim
	of context.Context //nolint:containedctx // of the waiter
}

func (o *oldest) add(c kept) {
	o.n++
	if o.all = append(o.all, c); len(o.all) >= 2*mostKept {
		o.cut()
	}
}

func (o *oldest) cut() []kept {
	slices.SortStableFunc(o.all, func(x, y kept) int {
		return cmp.Or(x.Since.Compare(y.Since), cmp.Compare(x.Name, y.Name))
	})
	o.all = o.all[:min(len(o.all), mostKept)]
	return o.all
}

// inTurn returns what is in two lists: the first of either, then the second of
// either.
func inTurn[T any](x, y []T) []T {
	all := make([]T, 0, len(x)+len(y))
	for i := range max(len(x), len(y)) {
		if i < len(x) {
			all = append(all, x[i])
		}
		if i < len(y) {
			all = append(all, y[i])
		}
	}
	return all
}

// sending prepares a message to all who listen to a channel, which is classic
// whatever those of locks are.
func sending(server *request.Server, channel, text string) request.Call {
	return request.Call{
		Server: server, Script: lua.ClientTell, Keys: []string{}, Args: []string{channel, text},
		Lease: server.Length, Stop: server.Quit, Single: true,
	}
}
