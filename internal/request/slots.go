package request

import (
	"fmt"
	"sync/atomic"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/wire"
)

// slots are what a client for a single server learns of hash slots: its server may be a node of a cluster, or an endpoint in
// front of one.
type slots struct {
	count    atomic.Bool               // a request about keys of several was refused
	answered [16384 / 64]atomic.Uint64 // those of whose keys one was answered
}

// SlotsCount says whether all keys of a request must share a hash slot.
func SlotsCount(s *Server) bool { return s.Traits.Cluster || s.senders.slots.count.Load() }

// placed notes that the server has answered about keys of their slot.
func (s *slots) placed(keys []string) {
	if len(keys) > 0 {
		slot := wire.Slot(keys[0])
		if word := &s.answered[slot/64]; word.Load()&(1<<(slot%64)) == 0 {
			word.Or(1 << (slot % 64))
		}
	}
}

func (s *slots) has(keys []string) bool {
	slot := wire.Slot(keys[0])
	return s.answered[slot/64].Load()&(1<<(slot%64)) != 0
}

// misplaced learns from how an attempt has failed, and returns what to make of MOVED; nil: it was not that. MOVED is an outage
// as a rule: an endpoint leads to another server now, and the driver connects anew. It is the end if the new connection is
// told so again, and no key of the slot was ever here.
func (o *Call) misplaced(re *driver.RunError, again bool) *driver.RunError {
	switch {
	case o.Server.Traits.Cluster:
	case re.Code == "CROSSSLOT" && !o.Server.senders.slots.count.Swap(true):
		o.Server.Apart()
	case re.Code == "MOVED":
		e := *re
		e.Err = fmt.Errorf("%w (the server is a node of a cluster, and the client is for a single server: use a cluster client)", re.Err)
		if again && len(o.Keys) > 0 && !o.Server.senders.slots.has(o.Keys) {
			e.Outcome = driver.Refused
		}
		return &e
	}
	return nil
}
