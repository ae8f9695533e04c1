package dashboard

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/overview"
)

// probeTime is how long an answer may take. Kubernetes waits for a second unless
// it is told otherwise. The server has a little less, so that a driver that heeds
// its context can say what is wrong.
const (
	probeTime  = 800 * time.Millisecond
	serverTime = probeTime - 50*time.Millisecond
)

// Health returns a handler for readiness probes: the status is 200 with "ok" if
// redlatch.Client.Healthy returns nil, and else 503 with what is wrong, a line for
// each sentence. It answers after 0.8 seconds at the latest, also if the driver
// returns later, and then with 503. It asks the server once at a time: a probe
// that comes meanwhile gets the same answer.
//
// It is not for liveness probes. A process that is restarted in an outage gives up
// its holds, and most holds would have outlived the outage.
//
// The handler has no authentication of its own. An error may name servers and
// users, so mount the handler where only the platform reaches it. mask is as
// Options.Mask; nil hides nothing.
func Health(client *redlatch.Client, mask func(text string) string) http.Handler {
	asked := &prober{client: client}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		head := w.Header()
		head.Set("Content-Type", "text/plain; charset=utf-8")
		head.Set("X-Content-Type-Options", "nosniff")
		head.Set("Cache-Control", "no-store")
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			head.Set("Allow", "GET, HEAD")
			http.Error(w, "only GET and HEAD", http.StatusMethodNotAllowed)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), probeTime)
		defer cancel()
		text := "ok"
		if err := asked.healthy(ctx); err != nil {
			if text = err.Error(); mask != nil {
				text = mask(text)
			}
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		for line := range strings.SplitSeq(text, "\n") {
			_, _ = w.Write([]byte(overview.Printable(line) + "\n")) // a probe that is gone is told nothing
		}
	})
}

// A prober asks a client whether it is healthy, once at a time.
type prober struct {
	client *redlatch.Client

	mu  sync.Mutex
	now *verdict // that is still to come; nil: nobody asks
}

// A verdict is what Client.Healthy returns.
type verdict struct {
	come chan struct{} // closed when err is set
	err  error
}

// healthy returns what Client.Healthy returns, or an error when ctx ends before:
// not every driver returns in time when the server is silent.
func (p *prober) healthy(ctx context.Context) error {
	v := p.ask(ctx)
	select {
	case <-v.come:
		return v.err
	case <-ctx.Done():
		return fmt.Errorf("%w: no answer in time", redlatch.ErrUnavailable)
	}
}

// ask returns the verdict that is to come, and asks for one if nobody does. It
// does not end with ctx, as others may share it.
func (p *prober) ask(ctx context.Context) *verdict {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now != nil {
		return p.now
	}
	v := &verdict{come: make(chan struct{})}
	p.now = v
	go func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), serverTime)
		defer cancel()
		v.err = p.client.Healthy(ctx)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.now = nil
		close(v.come)
	}()
	return v
}
