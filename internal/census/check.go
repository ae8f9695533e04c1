package census

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/inspect"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/wire"
)

const (
	// mostChecked is how many names are looked up in Redis for one question: those of
	// the longest waits and the oldest holds.
	mostChecked = 256
	// mostRead is how many silent clients are looked up, and readFor for how long.
	mostRead = 64
	readFor  = 3 * time.Second
)

// An Object is what is stored under a name that was asked for, or that somebody
// claims.
type Object struct {
	inspect.Info
	// Others is how many listen to the channel of its releases at most, beyond the
	// clients that have said that they do; -1 if that cannot be counted.
	Others int
}

// check compares what was answered with what is stored.
func (k *Census) check(ctx context.Context, ans *Answers, asked []string) error {
	claims, listening := ans.byName(), ans.listening()
	names := ans.worst(asked, claims)
	found, err := k.lookUp(ctx, names)
	for i, info := range found {
		if info != nil {
			compare(*info, claims[names[i]])
			ans.Objects = append(ans.Objects, Object{*info, -1})
		}
	}
	if err != nil {
		return err
	}
	k.countOthers(ctx, ans.Objects, listening)
	k.addUnheard(ctx, ans)
	return nil
}

// lookUp returns what is stored under names, at the same places; nil where that is
// nothing that can be read. Several are asked for at a time: their requests share
// what goes to the server together. An error that is not about one name ends it.
func (k *Census) lookUp(ctx context.Context, names []string) ([]*inspect.Info, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	found := make([]*inspect.Info, len(names))
	var failed sync.Once
	var first error
	request.AtATime(len(names), func(i int) bool {
		info, err := k.inspector.Info(ctx, names[i])
		switch {
		case err == nil:
			found[i] = &info
		case ctx.Err() != nil, errors.Is(err, request.ErrClosed), errors.Is(err, request.ErrUnavailable):
			failed.Do(func() { first = err })
			cancel()
			return false
		}
		// Else it is something else, or not allowed: nothing is known of such claims.
		return true
	})
	return found, first
}

// claims yields all that was claimed, and who claims it.
func (answers *Answers) claims(yield func(*Answer, *Claim) bool) {
	for i := range answers.All {
		x := &answers.All[i]
		for j := range x.Claims {
			if !yield(x, &x.Claims[j]) {
				return
			}
		}
	}
}

// byName returns the claims about each name.
func (answers *Answers) byName() map[string][]*Claim {
	by := map[string][]*Claim{}
	for _, c := range answers.claims {
		by[c.Name] = append(by[c.Name], c)
	}
	return by
}

// listening returns for each name for how many subscribers they stand who have
// said that they wait for it, or that they have it and still listen: all callers
// of a client share one.
func (answers *Answers) listening() map[string]float64 {
	by, last := map[string]float64{}, map[string]*Answer{}
	for x, c := range answers.claims {
		if (c.Waits || c.Listens) && last[c.Name] != x {
			last[c.Name] = x
			by[c.Name] += x.weight
		}
	}
	return by
}

// worst returns the names to look up: those that were asked for, and then those of
// the longest waits and the oldest holds in turn.
func (answers *Answers) worst(asked []string, claims map[string][]*Claim) []string {
	var held, waiting []*Claim
	for _, of := range claims {
		for _, c := range of {
			switch {
			case c.Waits:
				waiting = append(waiting, c)
			case c.Lost == "":
				held = append(held, c)
			}
		}
	}
	longest := func(x, y *Claim) int { return cmp.Or(-cmp.Compare(x.For, y.For), cmp.Compare(x.Name, y.Name)) }
	slices.SortFunc(held, longest)
	slices.SortFunc(waiting, longest)
	var names []string
	seen := map[string]bool{}
	add := func(name string) {
		if len(names) < mostChecked && !seen[name] && wire.CheckName(name) == nil {
			seen[name] = true
			names = append(names, name)
		}
	}
	for _, name := range asked {
		add(name)
	}
	for _, c := range inTurn(waiting, held) {
		add(c.Name)
	}
	return names
}

// compare says of each claim about a name whether it is stored, as far as owners
// are.
func compare(info inspect.Info, claims []*Claim) {
	switch info.Kind {
	case inspect.Lock, inspect.Fenced, inspect.Fair, inspect.ReadWrite, inspect.Group, inspect.Expirable, inspect.Barrier:
	default:
		return
	}
	holds, queues := map[string]bool{}, map[string]bool{}
	for _, h := range info.Holders {
		holds[h.Owner] = true
	}
	for _, w := range info.Queue {
		queues[w.Owner] = true
	}
	for _, c := range claims {
		switch {
		case c.Owner == "" || c.Kind == inspect.Semaphore || c.Lost != "":
		case c.Waits:
			if queues[c.Owner] {
				c.Evidence = Stored
			}
		case holds[c.Owner]:
			c.Evidence = Stored
		default:
			c.Evidence = NotStored
		}
	}
}

// countOthers counts who listens to the releases of objects, beyond those who have
// said that they do: with one request for all objects of a node.
func (k *Census) countOthers(ctx context.Context, objects []Object, listening map[string]float64) {
	type group struct {
		channels []string
		of       []*Object
	}
	nodes := map[string]*group{}
	for i := range objects {
		o := &objects[i]
		channel := releaseChannel(&o.Info)
		if channel == "" || !k.server.SeenByScripts() {
			continue
		}
		node := k.server.Driver.Node(o.Name)
		if nodes[node] == nil {
			nodes[node] = &group{}
		}
		g := nodes[node]
		g.channels, g.of = append(g.channels, channel), append(g.of, o)
	}
	for _, g := range nodes {
		for i, n := range k.count(ctx, g.of[0].Name, g.channels, (*request.Call).Run) {
			g.of[i].Others = max(0, int(math.Round(float64(n)-listening[g.of[i].Name])))
		}
	}
}

// releaseChannel returns the channel to which all listen who wait for an object;
// empty if there is none, as of a fair lock, of which the queue tells.
func releaseChannel(info *inspect.Info) string {
	switch info.Kind {
	case inspect.Lock, inspect.Fenced, inspect.Group:
		return wire.Prefix(wire.LockChannel, info.Name)
	case inspect.ReadWrite:
		return wire.Prefix(wire.RWChannel, info.Name)
	case inspect.Semaphore, inspect.Expirable:
		return wire.Prefix(wire.SemaphoreChannel, info.Name)
	case inspect.Latch:
		return wire.LatchChannel(info.Name)
	}
	return ""
}

// addUnheard adds those who have said nothing, and of whom Redis has something:
// clients of Redisson, and silent ones.
func (k *Census) addUnheard(ctx context.Context, ans *Answers) {
	index := map[string]int{}
	for i := range ans.All {
		index[ans.All[i].Client] = i
	}
	who, end := k.Introducer(ctx, mostRead, readFor)
	defer end()
	add := func(client string, redlatch bool, c Claim) {
		i, known := index[client]
		if !known {
			i = len(ans.All)
			index[client] = i
			x := Answer{Client: client, Redlatch: redlatch}
			if redlatch {
				x.Identity = who(client)
			}
			ans.All = append(ans.All, x)
		}
		if x := &ans.All[i]; !x.Answered {
			x.Claims = append(x.Claims, c)
		}
	}
	for _, o := range ans.Objects {
		for _, h := range o.Holders {
			if h.Client != "" {
				add(h.Client, h.Redlatch, Claim{Name: o.Name, Kind: o.Kind, Mode: h.Mode, Owner: h.Owner, For: -1, Left: h.TTL, Count: h.Count, Evidence: Stored})
			}
		}
		for _, w := range o.Queue {
			if w.Client != "" {
				add(w.Client, w.Redlatch, Claim{Name: o.Name, Kind: o.Kind, Owner: w.Owner, For: -1, Left: -1, Waits: true, Evidence: Stored})
			}
		}
	}
}
