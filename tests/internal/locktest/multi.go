package locktest

import (
	"context"
	"time"

	"github.com/redlatch/redlatch"
)

// AcquireMulti acquires, or ends the test.
func (w *World) AcquireMulti(ctx context.Context, m *redlatch.Multi) *redlatch.MultiHold {
	w.Helper()
	h, err := m.Acquire(ctx)
	if err != nil {
		w.Fatalf("Acquire: %v", err)
	}
	return h
}

// AcquireMultiWithin acquires within that time, or ends the test.
func (w *World) AcquireMultiWithin(ctx context.Context, m *redlatch.Multi, wait time.Duration) *redlatch.MultiHold {
	w.Helper()
	h, err := m.TryAcquire(ctx, wait)
	if err != nil {
		w.Fatalf("TryAcquire: %v", err)
	}
	return h
}

// ReleaseMulti releases, or ends the test.
func (w *World) ReleaseMulti(h *redlatch.MultiHold) {
	w.Helper()
	if err := h.Release(bg); err != nil {
		w.Fatalf("Release: %v", err)
	}
}
