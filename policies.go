package redlatch

import (
	"fmt"
	"strconv"
)

// Acks says how many replicas have to acknowledge what an acquisition wrote before
// it counts. A positive number requires that many.
//
// It applies to locks of every kind, to Semaphores and to ExpirableSemaphores,
// and to their re-entries; latches, barriers and rate limiters do not wait for
// replicas, as Redisson's do not. If too few acknowledge in time what was acquired
// is given back, a re-entry taken back, and the call fails with a *AckError. A
// number requires the same of renewals and of Extend: if the replicas stay silent
// the lease is not prolonged, and in the end the hold is lost. What gives permits of
// either semaphore back, or changes how many there are, waits for replicas as well,
// but counts without them, which is an event (Events.NotAcknowledged).
//
// It makes a failover less likely to cost a lock, and promises no more than that:
// one acknowledgement out of two replicas does not help if the other one becomes
// the primary. A lock survives the failover to any replica only if all of them have
// acknowledged it. Only fencing protects a resource: see docs/guarantees.md.
//
// It costs an acquisition the replication's round trip in addition to its own, a
// connection of its own for as long, and each primary now and then a question about
// its replicas. A lock that passes between goroutines of this process is not
// acknowledged again, unless it gets a lease or a token on its way.
type Acks int

// The policies that are no number.
const (
	// AcksAuto is AcksAny with Sentinel and in a cluster, and AcksOff with a single
	// server: what Redisson does by default (checkLockSyncedSlaves).
	AcksAuto Acks = 0
	// AcksOff waits for no replica.
	AcksOff Acks = -1
	// AcksBestEffort waits for one replica, if the primary has any, and goes on
	// without it if it is silent, which is an event (Events.NotAcknowledged).
	AcksBestEffort Acks = -2
	// AcksAny requires one replica, if the primary has any. Where the server does
	// not know WAIT, or not say how many replicas it has, it requires nothing.
	AcksAny Acks = -3
)

// String returns "auto", "off", "best effort", "any" or the number.
func (a Acks) String() string {
	switch a {
	case AcksAuto:
		return "auto"
	case AcksOff:
		return "off"
	case AcksBestEffort:
		return "best effort"
	case AcksAny:
		return "any"
	}
	return strconv.Itoa(int(a))
}

// PubSub says by which of the two kinds of Pub/Sub clients tell one another.
// A client that uses one of them does not hear the other.
type PubSub uint8

// The values of PubSub.
const (
	// PubSubAuto is what Redisson does: sharded Pub/Sub in a cluster whose servers
	// know it (Redis 7, Valkey), and classic everywhere else.
	PubSubAuto PubSub = iota
	// PubSubClassic is PUBLISH and SUBSCRIBE: what Redisson does in a cluster with
	// shardedSubscriptionMode OFF, and before 3.19.
	PubSubClassic
	// PubSubSharded is SPUBLISH and SSUBSCRIBE. Redis before 7 does not know them:
	// there a release fails with this value, and with PubSubBoth.
	PubSubSharded
	// PubSubBoth publishes and listens both ways, for as long as clients of both
	// kinds share locks. It costs a second message and a second subscription, and
	// whoever uses the other kind alone takes part in turns by chance only.
	PubSubBoth
)

// String returns "auto", "classic", "sharded" or "both".
func (p PubSub) String() string {
	switch p {
	case PubSubAuto:
		return "auto"
	case PubSubClassic:
		return "classic"
	case PubSubSharded:
		return "sharded"
	case PubSubBoth:
		return "both"
	}
	return fmt.Sprintf("PubSub(%d)", uint8(p))
}
