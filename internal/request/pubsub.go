package request

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/lua"
	"github.com/redlatch/redlatch/internal/notify"
	"github.com/redlatch/redlatch/internal/script"
)

// messages are by which kind of Pub/Sub a client tells others. Unless that is
// decided from the start, the server is asked with the first request that has a
// key.
type messages struct {
	decided atomic.Uint32 // a script.Messages, plus one; 0: nothing is
}

// asWritten is what is decided where scripts are sent as they are written.
const asWritten = uint32(script.Classic) + 1

func (ms *messages) decide(m script.Messages) { ms.decided.Store(uint32(m) + 1) }

// how returns Classic until something is decided.
func (ms *messages) how() script.Messages { return script.Messages(max(ms.decided.Load(), 1) - 1) }

// SeenByScripts says that all who listen do so at the node that has the channel's
// slot, where a script sees them.
func (s *Server) SeenByScripts() bool { return !s.Traits.Cluster || s.messages.how() == script.Sharded }

// choose picks the form of the call's script that tells others as this client
// does. The error is that of a request, and call says how that went.
func (call *Call) choose(ctx context.Context) error {
	m := &call.Server.messages
	if m.decided.Load() == 0 && len(call.Keys) > 0 {
		if err := call.probe(ctx); err != nil {
			return err
		}
	}
	call.Script = call.Script.By(m.how())
	return nil
}

// probe asks the server which kind of Pub/Sub scripts can use.
func (call *Call) probe(ctx context.Context) error {
	probe := Call{Server: call.Server, Script: lua.PubSubProbe, Keys: call.Keys[:1], Lease: call.Lease, Stop: call.Stop, Until: call.Until, Since: call.Since, Single: call.Single, Refusals: call.Refusals}
	reply, err := probe.Send(ctx)
	if err != nil {
		call.Sent, call.Left, call.Failed = probe.Sent, probe.Left, probe.Failed
		return err
	}
	m := script.Classic
	if reply.Int == 1 {
		m = script.Sharded
	}
	call.Server.messages.decide(m)
	return nil
}

// Listen starts the subscription of news to an object's channel, unless it has
// been started. seen is called with each notice before those who wait are woken,
// onForeign as notify.Listener says; both may be nil.
func (s *Server) Listen(news *notify.Listener, channel string, seen func(driver.Notice), onForeign func()) {
	news.Start(func(h func(confirmed bool)) func() {
		return s.Subscribe(channel, func(n driver.Notice) {
			if seen != nil {
				seen(n)
			}
			h(n.Subscribed)
		}, news.Nudge)
	}, onForeign)
}

// Own returns for how many subscribers to a channel this client stands, for a
// script that counts the others: one, if the server has confirmed news. Of several
// clients of this process that share a driver none is that one.
func (s *Server) Own(news *notify.Listener, channel string) string {
	sharded := s.messages.how() != script.Classic
	if sharer, ok := s.Driver.(driver.Sharer); !news.Confirmed() || (ok && sharer.Listeners(channel, sharded) > 1) {
		return "0"
	}
	return "1"
}

// Subscribe listens to an object's channel. Messages that come another way than
// those that others count are only a nudge.
func (s *Server) Subscribe(channel string, h func(driver.Notice), nudge func()) (stop func()) {
	switch m := s.messages.how(); m {
	case script.Both:
		sharded := s.Driver.Subscribe(channel, true, h)
		classic := s.Driver.Subscribe(channel, false, func(driver.Notice) { nudge() })
		return sync.OnceFunc(func() { sharded(); classic() })
	default:
		return s.Driver.Subscribe(channel, m == script.Sharded, h)
	}
}
