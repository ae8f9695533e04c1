package dashboard

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/overview"
)

// probeTime is how long an answer may take. Kubernetes waits for a second unless it is told otherwise.
const probeTime = 800 * time.Millisecond

// Health returns a handler for readiness probes: the status is 200 with "ok" if redlatch.Client.Healthy returns nil, and
// else 503 with what is wrong, a line for each sentence. It answers within 0.8 seconds, and within a request to the server.
//
// It is not for liveness probes. A process that is restarted in an outage gives up its holds, and most holds would have
// outlived the outage.
//
// The handler has no authentication of its own. An error may name servers and users, so mount the handler where only the
// platform reaches it. mask is as Options.Mask; nil hides nothing.
func Health(client *redlatch.Client, mask func(text string) string) http.Handler {
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
		if err := client.Healthy(ctx); err != nil {
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
