package census

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/lua"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/wire"
)

const (
	// spreadEach is over how long answers are spread for each client that listens, unless
	// the caller says it: then a thousand need a second, and half a megabyte of the network
	// at a time is the most.
	spreadEach = time.Millisecond
	// spreadUnknown is over what they are spread if nobody knows how many listen.
	spreadUnknown = time.Second
	// grace is for how much longer answers are waited for: a client that has just answered
	// somebody else waits for a second.
	grace = answerPause + time.Second/2
	// mostClients is how many answers are read, and mostWaiting how many bytes of them wait
	// to be read. What is beyond that is dropped: somebody floods.
	mostClients = 10_000
	mostWaiting = 64 << 20
	// mostNodes is how many nodes are asked who listens, and mostTags how many keys are
	// tried to find one of each.
	mostNodes = 1000
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

// Silent returns how many of those who have listened gave no answer; -1 if nobody knows.
func (a *Answers) Silent() int {
	if a.Expected < 0 {
		return -1
	}
	return max(0, a.Expected-int(a.heard()+0.5))
}

// heard returns for how many subscribers there is an answer: several clients that share a
// driver are one.
func (a *Answers) heard() (n float64) {
	for i := range a.All {
		n += a.All[i].weight
	}
	return n
}

// Ask asks all clients, and looks whether Redis has what they say they hold. If ctx ends
// before that, it returns what it has learnt, with the error.
func (k *Census) Ask(ctx context.Context, q Question) (Answers, error) {
	f := filter{q.Glob, q.Names, q.Owners}
	if err := f.check(); err != nil {
		return Answers{Expected: -1}, err
	}
	box := newInbox()
	defer k.server.Driver.Subscribe(wire.Answers, false, box.hear)()
	ans := Answers{Expected: -1}
	if _, err := request.Await(ctx, k.server.Done, box.listening, time.Now().Add(k.server.Outage)); err != nil {
		if errors.Is(err, request.ErrWaitOver) {
			err = &request.OutageError{Cause: errDeaf}
		}
		return ans, err
	}
	ans.Expected = k.listeners(ctx)
	if q.Spread == 0 {
		q.Spread = time.Duration(ans.Expected) * spreadEach
		if ans.Expected < 0 {
			q.Spread = spreadUnknown
		}
	}
	q.Spread = max(0, min(q.Spread, mostSpread))
	key := rand.Text()
	text, _ := json.Marshal(question{V: version, Key: key, filter: f, Spread: q.Spread.Milliseconds()}) //nolint:errchkjson // strings and numbers always can
	if len(text) > mostQuestion {
		return ans, errFilter
	}
	o := sending(k.server, wire.Asked, string(text))
	if _, err := o.Send(ctx); err != nil {
		if re := driver.Failure(err); !o.Left && !re.Permanent() {
			err = &request.OutageError{Cause: re}
		}
		return ans, err
	}
	err := k.collect(ctx, &ans, box, key, &f, time.Now().Add(q.Spread+grace))
	ans.At = time.Now()
	if err != nil {
		return ans, err
	}
	err = k.check(ctx, &ans, q.Names)
	ans.findWaits()
	return ans, err
}

var errDeaf = errors.New("the channel of answers cannot be heard")

// listeners returns how many subscribers the channel of questions has at all nodes; -1 if
// a node does not say.
func (k *Census) listeners(ctx context.Context) int {
	keys, all := k.keys(ctx), 0
	if len(keys) == 0 {
		return -1
	}
	for _, key := range keys {
		n := k.count(ctx, key, wire.Asked, (*request.Call).Send)
		if n < 0 {
			return -1
		}
		all += n
	}
	return all
}

// count returns how many subscribers a channel has at the node of a key; -1 if that is not
// known.
func (k *Census) count(ctx context.Context, key, channel string, run func(*request.Call, context.Context) (driver.Reply, error)) int {
	o := k.server.Question(lua.PubSubCount, []string{key})
	o.Args = []string{channel}
	o.Single = true
	reply, err := run(&o, ctx)
	if err != nil || reply.Kind != driver.ReplyInt || reply.Int < 0 {
		return -1
	}
	return int(reply.Int)
}

// keys returns one key for each node, if there is one: nobody needs to have written them.
func (k *Census) keys(ctx context.Context) []string {
	if !k.server.Traits.Cluster {
		return []string{wire.ClientKey("0")}
	}
	primaries, err := k.server.Driver.Primaries(ctx)
	if err != nil || len(primaries) > mostNodes {
		return nil
	}
	var keys []string
	seen := map[string]bool{}
	for i := 0; i < mostTags && len(keys) < len(primaries); i++ {
		key := wire.ClientKey(fmt.Sprint(i))
		if node := k.server.Driver.Node(key); !seen[node] {
			seen[node] = true
			keys = append(keys, key)
		}
	}
	if len(keys) < len(primaries) {
		return nil
	}
	return keys
}

// collect reads answers until everybody has answered who listens, or end.
func (k *Census) collect(ctx context.Context, ans *Answers, box *inbox, key string, f *filter, end time.Time) error {
	seen := map[string]bool{}
	for {
		texts, dropped := box.take()
		ans.Ignored += dropped
		for _, text := range texts {
			ans.add(text, key, f, seen)
		}
		if ans.Expected >= 0 && ans.heard() > float64(ans.Expected)-0.01 {
			return nil
		}
		if _, err := request.Await(ctx, k.server.Done, box.news, end); err != nil {
			if errors.Is(err, request.ErrWaitOver) {
				return nil
			}
			return err
		}
	}
}

// add reads an answer, if it is to the question that has a key.
func (a *Answers) add(text, key string, f *filter, seen map[string]bool) {
	var in answer
	if json.Unmarshal([]byte(text), &in) != nil || in.V != version {
		a.Ignored++
		return
	}
	if _, redlatch := wire.ClientOf(in.Client + ":0"); !redlatch || len(in.Client) != len("xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx") || len(in.For) > mostKeys || in.Left < 0 || in.Sharers < 0 {
		a.Ignored++
		return
	}
	switch {
	case !slices.Contains(in.For, key), seen[in.Client]:
		return // somebody else has asked, or what was heard already
	case len(a.All) == mostClients:
		a.Ignored++
		return
	}
	seen[in.Client] = true
	x := Answer{Client: in.Client, Identity: in.Identity.cleaned(), Redlatch: true, Answered: true, Left: in.Left, weight: 1 / float64(max(in.Sharers, 1))}
	for _, text := range in.Claims {
		c, ok := read(text, in.Client)
		if !ok {
			a.Ignored++
		} else if f.fits(c.Name, c.Owner) {
			x.Claims = append(x.Claims, c)
		}
	}
	a.All = append(a.All, x)
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
