package main

import (
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// epoch makes now comparable between the processes of one machine.
var epoch = time.Now()

// now returns nanoseconds: a monotonic clock within the process, started at the
// wall clock that all processes of the machine share.
func now() int64 { return epoch.UnixNano() + int64(time.Since(epoch)) }

// A page is memory that all goroutines of all processes of one contended
// measurement share. It is independent of Redis, so it can tell whether two
// holders were inside at once.
// The Java peer has the same layout (Page.java).
type page struct {
	inside     atomic.Int32 // each who shares with nobody counts as solitary, each other as one
	ending     atomic.Bool  // what is seen from now on says nothing
	_          [56]byte
	releasedBy atomic.Int64 // who started to unlock last
	releasedAt atomic.Int64 // and when
}

const solitary = 1 << 16

// openPage maps the file at path.
func openPage(path string) (*page, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	mem, err := syscall.Mmap(int(f.Fd()), 0, int(unsafe.Sizeof(page{})), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", path, err)
	}
	return (*page)(unsafe.Pointer(&mem[0])), nil
}

// newPage creates a zeroed file for openPage.
func newPage(path string) error {
	return os.WriteFile(path, make([]byte, unsafe.Sizeof(page{})), 0o600)
}

// end is called before contexts are cancelled: with them some implementations
// give up what they hold, as they say they do.
func (p *page) end() { p.ending.Store(true) }

// enter reports whether the caller may be inside, and, if another than the
// caller unlocked last, when it started to.
func (p *page) enter(who int64) (alone bool, handedAt int64) {
	alone = p.inside.Add(solitary) == solitary || p.ending.Load()
	if p.releasedBy.Load() != who {
		handedAt = p.releasedAt.Load()
	}
	return alone, handedAt
}

// leave is called right before unlocking; it returns the time that it noted.
func (p *page) leave(who int64) int64 {
	t := now()
	p.releasedBy.Store(who)
	p.releasedAt.Store(t)
	p.inside.Add(-solitary)
	return t
}

// enterShared and leaveShared are for those who share with each other, up to a
// limit.
func (p *page) enterShared(limit int32) (undisturbed bool) {
	return p.inside.Add(1) <= limit || p.ending.Load()
}

func (p *page) leaveShared() int64 {
	p.inside.Add(-1)
	return now()
}
