package readers

import (
	"context"
	"testing"

	"github.com/redlatch/redlatch/internal/claim"
	"github.com/redlatch/redlatch/internal/request"
)

// A reader that only tried was refused by an answer that was asked for before it
// came: for readers that had left since.
func TestAnAnswerThatNobodyWaitsForRefusesNobody(t *testing.T) {
	var rq readQueue
	asks := &reader{Wait: claim.Wait{Ctx: t.Context()}}
	push := func(r *reader) {
		rq.Lock()
		defer rq.Unlock()
		rq.PushLocked(r)
	}
	push(asks)
	ctx := rq.While(asks)
	rq.Lock()
	rq.TellLocked(asks, context.Canceled) // it leaves
	rq.Unlock()
	tries := &reader{Wait: claim.Wait{Ctx: t.Context()}, Once: true}
	push(tries)
	if waits := rq.refused(ctx, request.ErrWaitOver); waits || tries.Gone || rq.why != nil {
		t.Errorf("refused = %v, told %v, the answer is kept: %v; want none of it", waits, tries.Gone, rq.why)
	}
	ctx = rq.While(tries) // now it is asked for
	if waits := rq.refused(ctx, request.ErrWaitOver); waits || !tries.Gone {
		t.Errorf("refused = %v, told %v; want that it is told", waits, tries.Gone)
	}
}
