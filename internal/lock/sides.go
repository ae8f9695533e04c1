package lock

import (
	"fmt"
	"slices"

	"github.com/redlatch/redlatch/internal/wire"
)

// A side says what a Lock does with a read-write lock.
type side uint8

const (
	neither side = iota // it is a lock of another type
	reading
	writing
)

// mode is what Redis stores of who has it.
func (s side) mode() string {
	if s == writing {
		return wire.ModeWrite
	}
	return wire.ModeRead
}

// Outranked says whether nobody has the lock for himself, the modes being those in
// which what has its name is held: who reads under his own write is a writer.
func (l *Spec) Outranked(modes []string) bool {
	return l.side == reading && slices.Contains(modes, wire.ModeWrite)
}

// rwHeldKey is the context key of the nearest hold of the read-write lock with
// this name, to read or to write.
type rwHeldKey string

// Read returns the read-write lock with this name, to read.
func (c *Locks) Read(name string) Spec { return c.sideOf(name, reading, readSide) }

// Write returns the read-write lock with this name, to write.
func (c *Locks) Write(name string) Spec { return c.sideOf(name, writing, writeSide) }

// PreferWriters returns the same side of the lock with precedence for writers.
func (l *Spec) PreferWriters() Spec {
	preferring := *l
	preferring.writers = wire.Prefix(wire.RWWriters, l.name)
	return preferring
}

func (c *Locks) sideOf(name string, s side, k *kind) Spec {
	l := c.Plain(name)
	l.side, l.kind, l.channel, l.held = s, k, wire.Prefix(wire.RWChannel, name), rwHeldKey(name)
	return l
}

// writeInRead refuses what could never end.
func writeInRead(name string) error {
	return fmt.Errorf("%w: read-write lock %q is already held here to read, and a writer waits until nobody reads, so this would wait for itself; release the read hold first, or acquire the lock to write in the first place", ErrReentry, name)
}
