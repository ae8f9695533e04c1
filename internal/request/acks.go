package request

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/fact"
	"github.com/redlatch/redlatch/internal/invalid"
)

// A Policy says how many replicas have to acknowledge something. The values are
// those of the root package.
type Policy uint8

// The policies.
const (
	Auto       Policy = iota // Any where replicas take over, and Off elsewhere
	Off                      // none
	BestEffort               // one, if there is any, but it counts without
	Any                      // one, if there is any
	Required                 // Options.AckReplicas, of what prolongs a hold, too
)

// Acks ask replicas for acknowledgement.
type Acks struct {
	server *Server
	acker  driver.Acker // nil: nobody is asked
	policy Policy       // never Auto
	Holds  bool         // what creates a hold is to be acknowledged,
	Renews bool         // and what prolongs one

	mu    sync.Mutex          // guards known, and what is in it
	known map[string]replicas // by node; replaced after a break
}

// replicas are what is known of a primary's, of which there is one for each node.
type replicas struct {
	none  bool      // it has none,
	never bool      // or they cannot be waited for, which will not change
	since time.Time // when that was found out
}

// recheck is for how long a primary without replicas is believed to have none.
const recheck = time.Second

// start sets what the client's configuration asks for. It fails if the driver
// cannot do that.
func (k *Acks) start(s *Server) error {
	k.server, k.policy, k.known = s, s.Policy, make(map[string]replicas)
	if k.policy == Auto {
		k.policy = Off
		if s.Traits.Replicated {
			k.policy = Any
		}
	}
	if k.policy == Off {
		return nil
	}
	acker, ok := s.Driver.(driver.Acker)
	switch {
	case ok:
		k.acker, k.Holds, k.Renews = acker, true, k.policy == Required
	case k.policy == Required:
		return invalid.Errorf("redlatch: Config.Acks is AckRequired, but the %s driver cannot wait for replicas", s.Traits.Name)
	}
	return nil
}

// timeout is how long replicas have: half of the time that is left to the attempt
// and to its caller, who is to learn how it ended.
func (k *Acks) timeout(ctx context.Context, call *Call) time.Duration {
	d := min(k.server.AckTimeout, AttemptTimeout(call.Lease)/2)
	if !call.Until.IsZero() {
		d = min(d, time.Until(call.Until)/2)
	}
	if end, ok := ctx.Deadline(); ok {
		d = min(d, time.Until(end)/2)
	}
	return max(d, time.Millisecond)
}

// run sends a request about a key, waits for replicas, and returns why too few of
// them have acknowledged it. It does not know whether the request has changed
// anything.
func (k *Acks) run(ctx context.Context, r *driver.Request, about string, timeout time.Duration) error {
	key, known := r.Keys[0], k.knowledge()
	n, err := k.want(ctx, known, key)
	switch {
	case err != nil:
		f := driver.Failure(err)
		if r.Err = f; f.Outcome != driver.NotExecuted {
			r.Err = &driver.RunError{Outcome: driver.NotExecuted, Code: f.Code, Err: err}
		}
		return nil
	case n == 0:
		r.Reply, r.Err = k.acker.Run(ctx, r.Script, r.Keys, r.Args)
		return nil
	}
	var acked int
	r.Reply, acked, r.Err = k.acker.RunAcked(ctx, r.Script, r.Keys, r.Args, n, timeout)
	if r.Err != nil || acked >= n {
		return nil //nolint:nilerr // the request has it
	}
	var why error
	switch {
	case k.policy == Required:
		if acked < 0 {
			why = errNoWait
		}
		return k.server.Public(fact.TooFew{Name: k.server.Name(about), Want: n, Got: max(acked, 0), Timeout: timeout, Err: why})
	case acked < 0:
		k.note(known, key, replicas{never: true})
		return nil
	}
	// A server that does not answer now may have had replicas, and may no longer be
	// the primary.
	if left, err := k.ask(ctx, known, key); err == nil && left == 0 {
		return nil // they have gone
	}
	return k.server.Public(fact.TooFew{Name: k.server.Name(about), Want: n, Got: acked, Timeout: timeout})
}

// Doubt returns why what the server has granted does not count: too few replicas
// know of it. A request that was granted nothing leaves nothing to doubt.
func (call *Call) Doubt(granted bool) error {
	switch {
	case !granted || call.Short == nil:
		return nil
	case call.Server.Acks.policy == BestEffort:
		call.Unacked()
		return nil
	}
	return call.Short
}

// Unacked reports what counts though too few replicas know of it, if it is so.
func (call *Call) Unacked() {
	if call.Short != nil {
		call.Server.Unacknowledged(call.Short)
	}
}

var errNoWait = errors.New("the server does not know WAIT, or forbids it")

// want returns how many replicas to wait for. It fails if it is not known how many
// there are, and the server does not answer.
func (k *Acks) want(ctx context.Context, known map[string]replicas, key string) (int, error) {
	if k.policy == Required {
		return k.server.AckReplicas, nil
	}
	node := k.server.Driver.Node(key)
	k.mu.Lock()
	r, ok := known[node]
	old := ok && r.old()
	if old {
		known[node] = replicas{none: true, since: time.Now()} // one asks for all
	}
	k.mu.Unlock()
	switch {
	case !ok, old:
		n, err := k.ask(ctx, known, key)
		return min(n, 1), err
	case r.none, r.never:
		return 0, nil
	}
	return 1, nil
}

// ask asks how many replicas there are: none, as far as anybody can wait for them,
// if the server does not say.
func (k *Acks) ask(ctx context.Context, known map[string]replicas, key string) (int, error) {
	n, err := k.acker.Replicas(ctx, key)
	switch {
	case err == nil:
		k.note(known, key, replicas{none: n == 0})
		return n, nil
	case driver.Failure(err).Outcome == driver.Refused:
		k.note(known, key, replicas{never: true})
		return 0, nil
	case driver.Failure(err).Code == "READONLY":
		// It is the primary no more, which a script learns together with who is.
		n, err = 1, nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(known, k.server.Driver.Node(key))
	return n, err
}

// old says that it is time to look whether there still are no replicas.
func (r replicas) old() bool { return r.none && time.Since(r.since) >= recheck }

// pointless says that there is nobody to wait for: the request can go with others.
func (k *Acks) pointless(key string) bool {
	if k.policy == Required {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	r := k.known[k.server.Driver.Node(key)]
	return r.never || (r.none && !r.old())
}

// knowledge returns what is known until the next break. What is learned later of
// the servers of before goes nowhere.
func (k *Acks) knowledge() map[string]replicas {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.known
}

func (k *Acks) note(known map[string]replicas, key string, r replicas) {
	r.since = time.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	known[k.server.Driver.Node(key)] = r
}

// Forget is for a break: another server may be the node's primary now, or if node
// is empty everybody's.
func (k *Acks) Forget(node string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.known = maps.Clone(k.known); node != "" {
		delete(k.known, node)
	} else {
		clear(k.known)
	}
}
