package locktest

import (
	"context"

	"github.com/redlatch/redlatch"
)

func (w *World) AcquireMulti(m *redlatch.Multi, ctx context.Context, opts ...redlatch.Option) *redlatch.MultiHold {
	w.Helper()
	h, err := m.Acquire(ctx, opts...)
	if err != nil {
		w.Fatalf("Acquire: %v", err)
	}
	return h
}

func (w *World) ReleaseMulti(h *redlatch.MultiHold) {
	w.Helper()
	if err := h.Release(bg); err != nil {
		w.Fatalf("Release: %v", err)
	}
}
