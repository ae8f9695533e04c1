package request

import (
	"cmp"
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/invalid"
	"github.com/redlatch/redlatch/internal/script"
	"github.com/redlatch/redlatch/internal/wire"
	"github.com/redlatch/redlatch/internal/worker"
)

// A Server is where the requests of a client go.
type Server struct {
	Options

	Traits driver.Traits
	Calm   Phase           // while what is held may take its time: then its contexts end
	Done   <-chan struct{} // closed when nobody acquires anything any longer
	Quit   chan struct{}   // closed when nobody waits for an answer any longer
	Over   chan struct{}   // closed when nothing is settled any longer
	Pool   *worker.Pool    // of what runs in the background, and of callers that may leave something to be settled: see End

	Acks     Acks
	Sessions Sessions
	Orphans  Orphans

	lifetime Phase // ends with Done
	messages messages
	senders  senders
	numbers  atomic.Uint64 // of requests that count
	pools
}

// pools have what is used again and again.
type pools struct {
	attempts sync.Pool // of *attempt
	batches  sync.Pool // of *batch
	timers   sync.Pool // of *time.Timer; stopped
}

// A Phase of a server's life is a context, so that functions can be called at its
// end.
type Phase struct {
	ctx context.Context //nolint:containedctx // see OnEnd
	end context.CancelFunc
}

func newPhase() Phase {
	ctx, end := context.WithCancel(context.Background())
	return Phase{ctx, end}
}

// End ends the phase, if it has not ended yet.
func (p *Phase) End() { p.end() }

// Over says whether the phase has ended.
func (p *Phase) Over() bool { return p.ctx.Err() != nil }

// OnEnd has f called on a goroutine of its own when the phase ends, or has ended,
// unless cancel is called before.
func (p *Phase) OnEnd(f func()) (cancel func() bool) { return context.AfterFunc(p.ctx, f) }

// Options say how requests are sent. All are needed.
type Options struct {
	Driver      driver.Redis
	Prefix      string        // what stands before each name in Redis
	Outage      time.Duration // for how long a request is sent without an answer
	Length      time.Duration // what requests are about that are about no lease
	Policy      Policy        // whether replicas are to acknowledge something
	AckReplicas int           // how many, of the policy Required
	AckTimeout  time.Duration // in this time
	Sharded     bool          // how clients tell one another: by sharded Pub/Sub,
	Classic     bool          // or classic, or both; neither: the servers are asked
	// Answered hears of each answer. It may be set after New, before the first
	// request.
	Answered func(node string)
	// Apart is called once, when requests about keys of several hash slots were
	// refused. As Answered.
	Apart func()

	// Public makes the error that users see of a fact. It is for all engines.
	Public func(error) error
	// Unacknowledged reports an error of what counts though too few replicas have
	// acknowledged it, and RenewFailed why so many holds were not prolonged.
	Unacknowledged func(err error)
	RenewFailed    func(holds int, err error)
}

// idleWorkers is how many goroutines are kept for requests to come.
const idleWorkers = 64

// New returns a server. It does no I/O.
func New(o Options) (*Server, error) {
	s := &Server{Options: o, Traits: o.Driver.Traits(), Pool: worker.New(idleWorkers), Quit: make(chan struct{}), Over: make(chan struct{})}
	s.lifetime, s.Calm = newPhase(), newPhase()
	s.Done = s.lifetime.ctx.Done()
	switch {
	case o.Sharded && o.Classic:
		s.messages.decide(script.Both)
	case o.Sharded:
		s.messages.decide(script.Sharded)
	case o.Classic || !s.Traits.Cluster:
		s.messages.decide(script.Classic)
	}
	if err := s.Acks.start(s); err != nil {
		return nil, err
	}
	s.senders.start(s)
	s.Sessions.server = s
	s.Orphans = Orphans{server: s, timers: make(map[*time.Timer]orphan), owed: make(map[string]orphan)}
	return s, nil
}

// Key returns the name in Redis of what users call by name, and Name what they
// call it. An engine knows objects by their keys, and tells users their names. No
// name stays none.
func (s *Server) Key(name string) string {
	if name == "" {
		return ""
	}
	return s.Prefix + name
}

// Name is the other way round. What is none of this client's keeps its name.
func (s *Server) Name(key string) string { return strings.TrimPrefix(key, s.Prefix) }

// CheckKey refuses names that Redis could not handle.
func CheckKey(key string) error {
	if err := wire.CheckName(key); err != nil {
		return invalid.Errorf("redlatch: %w", err)
	}
	return nil
}

// Pattern returns the glob pattern for keys that one for names stands for; of all
// names, if it is empty.
func (s *Server) Pattern(names string) string {
	if s.Prefix == "" {
		return names
	}
	return wire.Literally(s.Prefix) + cmp.Or(names, "*")
}

// Closed says whether nobody acquires anything any longer.
func (s *Server) Closed() bool { return closed(s.Done) }

// Left says whether nobody waits for an answer any longer.
func (s *Server) Left() bool { return closed(s.Quit) }

// Broke notes that a connection to a node was lost, or to any if it is "": until
// there is an answer, callers leave it to workers to wait for the next one.
func (s *Server) Broke(node string) {
	for _, x := range s.senders.all(node) {
		x.mu.Lock()
		x.quiet = true
		x.mu.Unlock()
	}
}

// Stop ends the waiting of all callers that acquire something, also for an answer,
// unless they are in the driver.
func (s *Server) Stop() {
	s.lifetime.End()
	s.senders.tell()
}

// OnStop has f called on a goroutine of its own when Stop is, or was, unless
// cancel is called before.
func (s *Server) OnStop(f func()) (cancel func() bool) { return s.lifetime.OnEnd(f) }

// Leave ends the waiting of all other callers. It is called once.
func (s *Server) Leave() {
	s.Stop()
	close(s.Quit)
	s.senders.tell()
}

// End waits until nothing runs in the background, at most for d, and says
// whether it is so. Then nothing is sent any longer that has failed.
func (s *Server) End(d time.Duration) bool {
	ended := s.Pool.Close(d)
	close(s.Over)
	s.senders.tell()
	return ended
}
