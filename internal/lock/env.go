package lock

import (
	"sync/atomic"

	"github.com/redlatch/redlatch/internal/renew"
	"github.com/redlatch/redlatch/internal/script"
	"github.com/redlatch/redlatch/internal/worker"
)

// An env is what the terms of a client share.
type env struct {
	Options

	watchdogMs string
	seq        atomic.Uint64 // of terms

	lossWork *worker.Queue // of losses: what has to be done when the contexts have ended
	lapsed   lapsed
	detached detached
	renewals map[*script.Script]*renew.Kind // how leases are renewed with a script

	// quit releases the id of a lock whose kind gathers, together with others. t is its term, which has a share of its home
	// for that; nil: it is an orphan's.
	quit func(l *Spec, id string, t *term)
}
