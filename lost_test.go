package redlatch

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch/internal/claim"
	"github.com/redlatch/redlatch/internal/hooks"
)

// A lateness is that of the latest loss that was told.
type lateness struct {
	hooks.Observer

	late time.Duration
}

func (l *lateness) Lost(_ *claim.Loss, _, late time.Duration) { l.late = late }

// A process that stands still learns of the end of its hold when it goes on. By
// then somebody else may have been inside.
func TestALossThatIsNoticedLateSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const late = 45 * time.Second
		for reason, want := range map[LossReason]time.Duration{LostExpired: late, LostMaxHold: late, LostGone: 0, LostRevoked: 0} {
			var text bytes.Buffer
			var told lateness
			var r reporter
			r.start(&Config{Logger: slog.New(slog.NewTextHandler(&text, nil))}, true)
			r.hooks.Add(&told, hooks.Needs{})
			end := time.Now()
			r.lost(claim.Loss{Claim: claim.Claim{Until: end}, Err: &LostError{Reason: reason, Confirmed: end}, At: end.Add(late)})
			synctest.Wait()
			if line := " late=" + want.String() + " "; told.late != want || !strings.Contains(text.String(), line) {
				t.Errorf("%s: %v, and the log has no%s: %s", reason, told.late, line, text.String())
			}
			r.queue.Close()
		}
	})
}
