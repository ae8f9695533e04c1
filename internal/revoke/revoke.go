package revoke

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/lock"
	"github.com/redlatch/redlatch/internal/lua"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/script"
	"github.com/redlatch/redlatch/internal/wire"
	"github.com/redlatch/redlatch/internal/worker"
)

const (
	controlPrefix = wire.Control + ":"
	revokePause   = time.Second     // how long a holder has to confirm
	revokeTTL     = 5 * time.Second // how long the word stands
	mostRevokes   = 64              // messages that wait to be looked at
)

// A controlMessage asks a client to revoke a hold, or confirms that.
type controlMessage struct {
	Op    string `json:"op"` // "revoke" or "revoked"
	Name  string `json:"name,omitempty"`
	Raw   []byte `json:"raw,omitempty"` // the name, if that is no text
	Owner string `json:"owner,omitempty"`
	From  string `json:"from"`  // the asking client
	Nonce string `json:"nonce"` // of the question
}

// Control is a client's end of its channel.
type Control struct {
	locks   *lock.Locks
	other   func(text string) // what comes that is no business of this package
	revokes *worker.Queue

	ear         sync.Mutex    // guards what follows
	users       int           // who wants to hear others
	unsubscribe func()        // if there are any
	heard       chan struct{} // closed when the subscription was first confirmed
	closed      bool

	mu    sync.Mutex // guards asked
	asked map[string]chan struct{}
}

// New returns the control of a client that has these locks. Messages on its
// channel that have nothing to do with a release by force go to other, which must
// not block. The caller calls Stop.
func New(locks *lock.Locks, other func(text string)) *Control {
	k := &Control{locks: locks, other: other}
	k.asked = make(map[string]chan struct{})
	k.revokes = worker.NewQueue(mostRevokes, func(int) {})
	return k
}

// Listen has others heard until Stop, or until Unlisten was called as often. It
// does not block, and returns what is closed when they are.
func (k *Control) Listen() (heard <-chan struct{}) {
	k.ear.Lock()
	defer k.ear.Unlock()
	if k.users++; k.users == 1 && !k.closed {
		heard := make(chan struct{})
		k.heard = heard
		confirmed := sync.OnceFunc(func() { close(heard) })
		k.unsubscribe = k.locks.Server.Driver.Subscribe(controlPrefix+k.locks.ID, false, func(n driver.Notice) {
			var m controlMessage
			switch {
			case n.Subscribed:
				confirmed()
			case json.Unmarshal([]byte(n.Payload), &m) == nil: // else it is not ours
				m.Name, m.Raw = wire.JoinName(m.Name, m.Raw), nil
				k.handle(m, n.Payload)
			}
		})
	}
	return k.heard
}

// Unlisten ends one Listen.
func (k *Control) Unlisten() {
	k.ear.Lock()
	defer k.ear.Unlock()
	if k.users--; k.users == 0 && !k.closed {
		k.unsubscribe()
	}
}

// Stop ends all that.
func (k *Control) Stop() {
	k.ear.Lock()
	if k.users > 0 && !k.closed {
		k.unsubscribe()
	}
	k.closed = true
	k.ear.Unlock()
	k.revokes.Close()
}

func (k *Control) handle(m controlMessage, text string) {
	switch m.Op {
	case "revoke":
		k.revokes.Add(func() { k.revoke(m) })
	case "revoked":
		k.mu.Lock()
		answer := k.asked[m.Nonce]
		delete(k.asked, m.Nonce)
		k.mu.Unlock()
		if answer != nil {
			close(answer)
		}
	default:
		k.other(text)
	}
}

// revoke ends a hold, if there is one and whoever asks may, and then tells the
// asker. It does so until Close has ended all holds. Of a detached hold there is
// nothing to end here, and nobody else would answer.
func (k *Control) revoke(m controlMessage) {
	has, detached := k.locks.Has(m.Name, m.Owner)
	if !has && !detached {
		return
	}
	asked := []string{wire.Prefix(wire.Revoke, m.Name)}
	call := request.Call{Server: k.locks.Server, Script: lua.ControlAsked, Keys: asked, Args: []string{m.Owner}, Lease: k.locks.Watchdog, Stop: k.locks.Server.Over, Until: time.Now().Add(revokeTTL)}
	if reply, err := call.Run(context.Background()); err != nil || reply.Int != 1 || !(detached || k.locks.Revoke(m.Name, m.Owner)) {
		return
	}
	from := m.From
	m.Op = "revoked"
	answer := k.message(lua.ControlAnswer, from, m)
	answer.Keys, answer.Args = asked, append(answer.Args, m.Owner)
	_, _ = answer.Send(context.Background())
}

// message prepares a request that sends m to a client, to be sent as it is: these
// channels are classic, also where those of locks are sharded.
func (k *Control) message(s *script.Script, to string, m controlMessage) request.Call {
	m.Name, m.Raw = wire.SplitName(m.Name)
	text, _ := json.Marshal(m) //nolint:errchkjson // strings always can
	return request.Call{Server: k.locks.Server, Script: s, Args: []string{controlPrefix + to, string(text)}, Lease: k.locks.Watchdog, Stop: k.locks.Server.Over, Single: true}
}

// ask asks the holder's client to end the hold and waits until it has, for
// a second at most. It reports whether the client has confirmed.
func (k *Control) ask(ctx context.Context, key string, h Holder) bool {
	if h.Client == k.locks.ID {
		return k.locks.Revoke(key, h.Owner)
	}
	answer, nonce := make(chan struct{}), rand.Text()
	k.mu.Lock()
	k.asked[nonce] = answer
	k.mu.Unlock()
	defer func() {
		k.mu.Lock()
		delete(k.asked, nonce)
		k.mu.Unlock()
	}()
	ctx, cancel := context.WithTimeout(ctx, revokePause)
	defer cancel()
	heard := k.Listen() // only for now: a user without the right would hear nothing else, with some drivers
	defer k.Unlisten()
	if _, err := request.Await(ctx, k.locks.Server.Quit, heard, time.Time{}); err != nil {
		return false // it would miss the answer
	}
	ask := k.message(lua.ControlAsk, h.Client, controlMessage{Op: "revoke", Name: key, Owner: h.Owner, From: k.locks.ID, Nonce: nonce})
	ask.Keys, ask.Args = []string{wire.Prefix(wire.Revoke, key)}, append(ask.Args, h.Owner, wire.Millis(revokeTTL))
	for pause := revokePause / 100; ; pause *= 2 {
		_, _ = ask.Send(ctx) // perhaps to nobody: it may be alive, and not have subscribed yet, or not again
		if _, err := request.Await(ctx, k.locks.Server.Quit, answer, time.Now().Add(pause)); !errors.Is(err, request.ErrWaitOver) {
			return err == nil
		}
	}
}

// A Holder is who has a lock, or a value of a group, by what is stored.
type Holder struct {
	Client, Owner, Mode, Value string
	Redlatch                   bool // it is a client of redlatch, and can be asked
}

// Release releases a lock whoever has it, the holders being those of all that has
// its name, and says whether anybody had it. It asks those who can be asked to let
// go first, and dispossesses nobody who is not among the holders.
func (k *Control) Release(ctx context.Context, l *lock.Spec, holders []Holder) (bool, error) {
	var own []Holder
	var modes []string
	for _, h := range holders {
		modes = append(modes, h.Mode)
		if value, ok := l.Owns(h.Mode, h.Value); ok {
			h.Value = value
			own = append(own, h)
		}
	}
	args, queue := l.Forcing()
	if len(own) == 0 && !(queue && len(holders) == 0) || l.Outranked(modes) {
		return false, nil
	}
	var all sync.WaitGroup
	var revoked atomic.Bool
	asked := map[string]bool{}
	for _, h := range own {
		args = append(args, l.Seen(h.Owner, h.Value)...)
		if h.Redlatch && !wire.Kept(h.Owner) && !asked[h.Owner] { // of a lock that only stays nobody lets go
			asked[h.Owner] = true // once for all its values of a group
			all.Go(func() {
				if k.ask(ctx, l.Key, h) {
					revoked.Store(true)
				}
			})
		}
	}
	all.Wait()
	freed, err := l.Force(ctx, args)
	if err != nil {
		return revoked.Load(), err
	}
	// A client that was asked may have let go later than its answer was waited for.
	return freed || len(asked) > 0, nil
}
