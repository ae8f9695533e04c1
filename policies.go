package redlatch

import "fmt"

// Acks says whether replicas have to acknowledge what an acquisition wrote before
// it counts.
//
// It applies to locks of every kind, to semaphores of both kinds, and to
// re-entries; latches, barriers and rate limiters do not wait for replicas, as
// Redisson's do not. If too few acknowledge in time what was acquired is given
// back, a re-entry taken back, and the call fails with a *AckError. AckRequired
// asks the same of renewals and of Extend: if the replicas stay silent the lease
// is not prolonged, and in the end the hold is lost. What gives permits back, or
// changes how many there are, counts without replicas that stay silent, which is
// an event (observe.Hooks.NotAcknowledged).
//
// It makes a failover less likely to cost a lock, and promises no more: only a
// lock of which all replicas know survives the failover to any of them. Only
// fencing protects a resource: see docs/guarantees.md.
//
// It costs an acquisition the replication's round trip, and a connection of its
// own for as long. A lock that passes between goroutines of this process is
// acknowledged again only if it gets a lease or a token on its way.
type Acks uint8

// The values of Acks.
const (
	// AckAuto is AckAny with Sentinel and in a cluster, else AckOff: Redisson's
	// default (checkLockSyncedSlaves).
	AckAuto Acks = iota
	// AckOff waits for no replica.
	AckOff
	// AckBestEffort waits for one replica, if there is any. Its silence is an event
	// (observe.Hooks.NotAcknowledged).
	AckBestEffort
	// AckAny requires one replica, if there is any, and none if the server does not
	// know WAIT or how many there are.
	AckAny
	// AckRequired requires Config.AckReplicas replicas, for renewals, too.
	AckRequired
)

// String returns "auto", "off", "best effort", "any" or "required".
func (acks Acks) String() string {
	switch acks {
	case AckAuto:
		return "auto"
	case AckOff:
		return "off"
	case AckBestEffort:
		return "best effort"
	case AckAny:
		return "any"
	case AckRequired:
		return "required"
	}
	return fmt.Sprintf("Acks(%d)", uint8(acks))
}

// PubSub says by which of the two kinds of Pub/Sub clients tell one another.
// A client that uses one of them does not hear the other.
type PubSub uint8

// The values of PubSub.
const (
	// PubSubAuto is what Redisson does: sharded in a cluster whose servers know that
	// (Redis 7, Valkey), else classic.
	PubSubAuto PubSub = iota
	// PubSubClassic is PUBLISH and SUBSCRIBE, as Redisson with shardedSubscriptionMode
	// OFF, and before 3.19.
	PubSubClassic
	// PubSubSharded is SPUBLISH and SSUBSCRIBE. On Redis before 7 a release fails with
	// it, and with PubSubBoth.
	PubSubSharded
	// PubSubBoth publishes and listens both ways, for as long as clients of both kinds
	// share locks. It costs a second message and a second subscription, and whoever
	// uses the other kind alone takes part in turns by chance only.
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
