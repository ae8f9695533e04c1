package lock

import (
	"fmt"
	"slices"

	"github.com/redlatch/redlatch/internal/twins"
	"github.com/redlatch/redlatch/internal/wire"
)

const (
	readWrite = "read-write" // the space of both sides
	modeRead  = wire.ModeRead
	modeWrite = wire.ModeWrite
)

// Outranked says whether nobody has the lock for himself, the modes being those in
// which what has its name is held: an owner that reads under its own write is a writer.
func (l *Spec) Outranked(modes []string) bool {
	return l.kind.under != "" && slices.Contains(modes, l.kind.under)
}

// Read returns the read-write lock that has this name in Redis, to read.
func (c *Locks) Read(key string) Spec { return c.sideOf(key, reading) }

// Write returns the read-write lock that has this name in Redis, to write.
func (c *Locks) Write(key string) Spec { return c.sideOf(key, writing) }

// PreferWriters returns the same side of the lock with precedence for writers.
func (l *Spec) PreferWriters() Spec {
	preferring := *l
	preferring.writers, preferring.twin = wire.Prefix(wire.RWWriters, l.key), twins.Writers
	if l.kind.shared {
		preferring.taking = []string{l.key, preferring.writers}
	}
	return preferring
}

func (c *Locks) sideOf(key string, k *kind) Spec {
	l := c.Plain(key)
	l.kind, l.entry.space, l.channel = k, k.space, wire.Prefix(wire.RWChannel, key)
	return l
}

// writeInRead refuses what could never end.
func writeInRead(name string) error {
	return fmt.Errorf("%w: read-write lock %q is already held here to read, and a writer waits until nobody reads, so this would wait for itself; release the read hold first, or acquire the lock to write in the first place", ErrReentry, name)
}
