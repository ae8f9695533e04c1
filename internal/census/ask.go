package census

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/lua"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/wire"
)

const (
	// spreadEach is over how long answers are spread for each client that listens,
	// unless the caller says it: then a thousand need a tenth of a second, and half of
	// the server's time meanwhile. Over a longer time fewer of them go through the
	// server together, and all cost it twice as much. (The script that asks says the
	// same.)
	spreadEach = time.Millisecond / 10
	// spreadUnknown is over what they are spread if nobody knows how many listen.
	spreadUnknown = time.Second
	// deafAfter is when a client that still cannot hear the channel of answers finds
	// out whether its user may use that.
	deafAfter = 250 * time.Millisecond
	// grace is for how much longer answers are waited for: a client that has just
	// answered somebody else waits for a second.
	grace = answerPause + time.Second/2
	// mostClients is how many answers are read, and mostWaiting how many bytes of them
	// wait to be read. What is beyond that is dropped: somebody floods.
	mostClients = 10_000
	mostWaiting = 64 << 20
	// mostNodes is how many nodes are asked who listens, and mostTags how many keys
	// are tried to find one of each; with leastTags each range of slots has one, too.
	mostNodes = 1000
	leastTags = 300
	mostTags  = 100 * mostNodes
)

// A Question is what clients are asked for.
type Question struct {
	Glob          string // a pattern for names; "" is for all, unless there are names or owners
	Names, Owners []string
	Spread        time.Duration // over which the answers come; 0: as many clients need
}

// An Answer is what a client said, or what is stored of one that said nothing.
type Answer struct {
	Client   string
	Identity Identity
	Redlatch bool
	Answered bool
	Claims   []Claim
	Left     int     // claims that it left out
	weight   float64 // how many subscribers it stands for
}

// Answers are what clients said to a question.
type Answers struct {
	At       time.Time // when the last one was waited for
	All      []Answer
	Expected int // how many have listened when they were asked; -1 if nobody knows
	Ignored  int // answers and claims that made no sense, or were too many
	Objects  []Object
	Waits    Waits
}

// Silent returns how many of those who have listened gave no answer; -1 if nobody
// knows.
func (answers *Answers) Silent() int {
	if answers.Expected < 0 {
		return -1
	}
	return max(0, answers.Expected-int(answers.heard()+0.5))
}

// heard returns for how many subscribers there is an answer: several clients that
// share a driver are one.
func (answers *Answers) heard() (n float64) {
	for i := range answers.All {
		n += answers.All[i].weight
	}
	return n
}

// Ask asks all clients, and looks whether Redis has what they say they hold. If
// ctx ends before that, it returns what it has learnt, with the error.
func (k *Census) Ask(ctx context.Context, q Question) (Answers, error) {
	ans := Answers{Expected: -1}
	if err := k.gather(ctx, &ans, q, nil); err != nil {
		return ans, err
	}
	err := k.check(ctx, &ans, q.Names)
	ans.findWaits()
	return ans, err
}

// WhoAre asks the clients that hold what has a name in Redis who they are, and
// returns what these say by their ids, as far as they say it within the limit. It
// is for clients that have no note yet. A client that has just begun may not hear
// the first question.
func (k *Census) WhoAre(ctx context.Context, name string, clients []string, limit time.Duration) map[string]Identity {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	who := map[string]Identity{}
	for range 2 {
		ans := Answers{Expected: -1}
		err := k.gather(ctx, &ans, Question{Names: []string{name}}, clients)
		for i := range ans.All {
			if a := &ans.All[i]; slices.Contains(clients, a.Client) {
				who[a.Client] = a.Identity
			}
		}
		if err != nil || len(who) == len(clients) {
			break
		}
		if _, err := request.Pause(ctx, k.server.Quit, nil, time.Time{}, deafAfter); err != nil {
			break
		}
	}
	return who
}

// gather asks all clients, and notes what they say. If only some of them matter,
// it waits for these.
func (k *Census) gather(ctx context.Context, ans *Answers, q Question, matter []string) error {
	f := filter{q.Glob, q.Names, q.Owners}
	if err := f.check(); err != nil {
		return err
	}
	box := newInbox()
	defer k.server.Driver.Subscribe(wire.Answers, false, box.hear)()
	if err := k.listens(ctx, box); err != nil {
		return err
	}
	key := rand.Text()
	text, _ := json.Marshal(question{V: version, Key: key, filter: f}) //nolint:errchkjson // strings and numbers always can
	if len(text)+len(`,"spread":10000`) > mostQuestion {
		return errFilter
	}
	spread, err := k.publish(ctx, ans, string(text[:len(text)-1]), q.Spread)
	if err != nil {
		return err
	}
	err = k.collect(ctx, ans, box, key, &f, time.Now().Add(spread+grace), matter)
	ans.At = time.Now()
	return err
}

var errDeaf = errors.New("the channels " + wire.Asked + " and " + wire.Answers + " cannot be heard")

// listens waits until the channel of answers is heard, and that of questions: the
// server counts the asker, too.
//
// If that takes long, it finds out whether the user may use the two channels, with
// messages that nobody minds: a user may publish where it may subscribe, and a
// driver goes on subscribing whatever the server says. One channel that is refused
// may keep a driver from hearing the other.
func (k *Census) listens(ctx context.Context, box *inbox) error {
	heard := func(d time.Duration) error {
		end := time.Now().Add(d)
		_, err := request.Await(ctx, k.server.Quit, box.listening, end)
		if err == nil {
			_, err = request.Await(ctx, k.server.Quit, k.listening, end)
		}
		return err
	}
	err := heard(min(deafAfter, k.server.Outage))
	if errors.Is(err, request.ErrWaitOver) {
		nothing, _ := json.Marshal(answer{V: version, Client: k.answerer.id}) //nolint:errchkjson // texts and numbers always can
		for _, channel := range []string{wire.Answers, wire.Asked} {
			call := sending(k.server, channel, string(nothing))
			if _, failed := call.Send(ctx); failed != nil && !call.Left && driver.Failure(failed).Permanent() {
				return mayNot(channel, failed)
			}
		}
		err = heard(k.server.Outage)
	}
	if errors.Is(err, request.ErrWaitOver) {
		return &request.OutageError{Cause: errDeaf}
	}
	return err
}

// An UnaskedError is why a watch of a lock does not know what only clients know.
// It does know what Redis has.
type UnaskedError struct{ Err error }

func (e *UnaskedError) Error() string { return e.Err.Error() }

// Unwrap returns why.
func (e *UnaskedError) Unwrap() error { return e.Err }

// RefusedFor is for how long a request that has failed so is not worth another
// one: longer if it lasts until somebody acts, as that the user may not ask.
func RefusedFor(err error) time.Duration {
	if err != nil && driver.Failure(err).Permanent() {
		return refusedFor
	}
	return 0
}

// mayNot says of which channel it is that a server has refused to publish to it.
func mayNot(channel string, err error) error {
	return fmt.Errorf("redlatch: channel %s: %w", channel, err)
}

// publish sends a question, which lacks its end, and notes how many hear it. It
// returns over how long the answers come.
//
// One server counts those who listen with the same script that publishes, so these
// are the same. In a cluster each node is asked, before and after: whoever begins
// or ends to listen meanwhile may be counted or not, and the larger number is
// taken, for a client that is told to be silent and is not there does less harm
// than one that is overlooked.
func (k *Census) publish(ctx context.Context, ans *Answers, text string, spread time.Duration) (time.Duration, error) {
	before := -1
	if k.server.Traits.Cluster && spread == 0 {
		if before = k.listeners(ctx); before < 0 {
			spread = spreadUnknown
		} else {
			spread = max(time.Duration(before)*spreadEach, time.Millisecond)
		}
	}
	ms := max(0, min(spread, mostSpread)).Milliseconds()
	if spread == 0 {
		ms = -1 // as many as listen
	}
	call := sending(k.server, wire.Asked, text+`,"spread":`)
	call.Script = lua.ClientAsk
	call.Args = append(call.Args, strconv.FormatInt(ms, 10), wire.Millis(spreadUnknown))
	reply, err := call.Send(ctx)
	switch {
	case err != nil && !call.Left && driver.Failure(err).Permanent():
		return 0, mayNot(wire.Asked, err)
	case err != nil && !call.Left:
		return 0, &request.OutageError{Cause: driver.Failure(err)}
	case err != nil:
		return 0, err
	case len(reply.List) != 2:
		return 0, request.Unexpected(reply, call.Script)
	}
	ans.Expected = int(reply.List[0].Int)
	if k.server.Traits.Cluster {
		if ans.Expected = k.listeners(ctx); ans.Expected >= 0 {
			ans.Expected = max(ans.Expected, before)
		}
	}
	return min(wire.FromMillis(reply.List[1].Int), mostSpread), nil
}

// listeners returns how many subscribers the channel of questions has at all nodes
// of a cluster; -1 if a node does not say.
func (k *Census) listeners(ctx context.Context) int {
	keys, all := k.keys(ctx), 0
	if len(keys) == 0 {
		return -1
	}
	for _, key := range keys {
		n := k.count(ctx, key, []string{wire.Asked}, (*request.Call).Send)
		if n == nil {
			return -1
		}
		all += n[0]
	}
	return all
}

// count returns how many subscribers each of some channels has at the node of a
// key; nil if that is not known.
func (k *Census) count(ctx context.Context, key string, channels []string, run func(*request.Call, context.Context) (driver.Reply, error)) []int {
	call := k.server.Question(lua.PubSubCount, []string{key})
	call.Args = channels
	call.Single = true
	reply, err := run(&call, ctx)
	if err != nil || len(reply.List) != len(channels) {
		return nil
	}
	counts := make([]int, len(channels))
	for i, r := range reply.List {
		counts[i] = max(0, int(r.Int))
	}
	return counts
}

// keys returns one key for each node, if there is one: nobody needs to have
// written them. If they have more names than there are nodes, some stand for
// ranges of slots, and nobody knows which of these are at the same node.
func (k *Census) keys(ctx context.Context) []string {
	primaries, err := k.server.Driver.Primaries(ctx)
	if err != nil || len(primaries) > mostNodes {
		return nil
	}
	var keys []string
	seen := map[string]bool{}
	for i := 0; i < leastTags || i < mostTags && len(keys) < len(primaries); i++ {
		key := wire.ClientKey(fmt.Sprint(i))
		if node := k.server.Driver.Node(key); !seen[node] {
			seen[node] = true
			keys = append(keys, key)
		}
	}
	if len(keys) != len(primaries) {
		return nil
	}
	return keys
}

// collect reads answers until everybody has answered who listens, or all who
// matter, or end.
func (k *Census) collect(ctx context.Context, ans *Answers, box *inbox, key string, f *filter, end time.Time, matter []string) error {
	seen := map[string]bool{}
	for {
		texts, dropped := box.take()
		ans.Ignored += dropped
		for _, text := range texts {
			ans.add(text, key, f, seen)
		}
		enough := len(matter) > 0 && !slices.ContainsFunc(matter, func(client string) bool { return !seen[client] })
		if enough || ans.Expected >= 0 && ans.heard() > float64(ans.Expected)-0.01 {
			return nil
		}
		if _, err := request.Await(ctx, k.server.Quit, box.news, end); err != nil {
			if errors.Is(err, request.ErrWaitOver) {
				return nil
			}
			return err
		}
	}
}

// add reads an answer, if it is to the question that has a key.
func (answers *Answers) add(text, key string, f *filter, seen map[string]bool) {
	var in answer
	if json.Unmarshal([]byte(text), &in) != nil || in.V != version {
		answers.Ignored++
		return
	}
	if !isClient(in.Client) || len(in.For) > mostKeys || in.Left < 0 || in.Sharers < 0 {
		answers.Ignored++
		return
	}
	switch {
	case !slices.Contains(in.For, key), seen[in.Client]:
		return // somebody else has asked, or what was heard already
	case len(answers.All) == mostClients:
		answers.Ignored++
		return
	}
	seen[in.Client] = true
	x := Answer{Client: in.Client, Identity: in.Identity.cleaned(), Redlatch: true, Answered: true, Left: in.Left, weight: 1 / float64(max(in.Sharers, 1))}
	for _, text := range in.Claims {
		c, ok := read(text, in.Client)
		if !ok {
			answers.Ignored++
		} else if f.fits(c.Name, c.Owner) {
			x.Claims = append(x.Claims, c)
		}
	}
	answers.All = append(answers.All, x)
}

// An inbox is where answers wait to be read.
type inbox struct {
	listening chan struct{} // told when the subscription is confirmed
	news      chan struct{} // told when there is something

	mu      sync.Mutex // guards what follows
	texts   []string
	bytes   int
	dropped int
}

func newInbox() *inbox {
	return &inbox{listening: make(chan struct{}, 1), news: make(chan struct{}, 1)}
}

// hear takes what comes by the channel. It does not block.
func (b *inbox) hear(n driver.Notice) {
	if n.Subscribed {
		signal(b.listening)
		return
	}
	b.mu.Lock()
	if len(n.Payload) > mostAnswer || b.bytes+len(n.Payload) > mostWaiting || len(b.texts) == 2*mostClients {
		b.dropped++
	} else {
		b.texts, b.bytes = append(b.texts, n.Payload), b.bytes+len(n.Payload)
	}
	b.mu.Unlock()
	signal(b.news)
}

// take returns what waits, and how much was dropped.
func (b *inbox) take() (texts []string, dropped int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	texts, dropped = b.texts, b.dropped
	b.texts, b.bytes, b.dropped = nil, 0, 0
	return texts, dropped
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
