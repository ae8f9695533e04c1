package request

import (
	"fmt"
	"sync/atomic"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/wire"
)

// slots are what a client for a single server learns of hash slots: its server may
// be a node of a cluster, or an endpoint in front of one.
type slots struct {
	count    atomic.Bool               // a request about keys of several was refused
	answered [16384 / 64]atomic.Uint64 // those of whose keys one was answered
}

// SlotsCount says whether all keys of a request must share a hash slot.
func SlotsCount(s *Server) bool { return s.Traits.Cluster || s.senders.slots.count.Load() }

// learnSlots learns from how a request has failed that slots count, also if its
// caller has left.
func (out *sender) learnSlots(err error) {
	if s := out.server; !s.Traits.Cluster && driver.Failure(err).Code == "CROSSSLOT" && !s.senders.slots.count.Swap(true) {
		s.Apart()
	}
}

// placed notes that the server has answered about a key of its slot.
func (call *Call) placed() {
	if call.Server.Traits.Cluster || len(call.Keys) == 0 {
		return
	}
	if word, bit := call.Server.senders.slots.of(call.Keys[0]); word.Load()&bit == 0 {
		word.Or(bit)
	}
}

// of returns where it stands whether a key of a key's slot was answered.
func (all *slots) of(key string) (word *atomic.Uint64, bit uint64) {
	slot := wire.Slot(key)
	return &all.answered[slot/64], 1 << (slot % 64)
}

// misplaced says what to make of how an attempt has failed, and returns the latest
// answer that the server is not the primary of the keys. MOVED is an outage as a
// rule: an endpoint leads to another server now, and the driver connects anew. It
// is the end if the new connection is told so again, and no key of the slot was
// ever here.
func (call *Call) misplaced(err, before error) (now, elsewhere error) {
	slots, re := &call.Server.senders.slots, driver.Failure(err)
	switch {
	case call.Server.Traits.Cluster:
	case !call.Server.Traits.Replicated && (re.Code == "READONLY" || re.Code == "MASTERDOWN"): // the driver leaves the server
		return err, err
	case re.Code == "MOVED" && len(call.Keys) > 0:
		e := *re
		e.Err = fmt.Errorf("%w (the server is a node of a cluster, and the client is for a single server: use a cluster client)", re.Err)
		if word, bit := slots.of(call.Keys[0]); before != nil && driver.Failure(before).Code == "MOVED" && word.Load()&bit == 0 {
			e.Outcome = driver.Refused
		}
		return &e, &e
	}
	return err, before
}
