package redlatch

import (
	"embed"

	"github.com/redlatch/redlatch/internal/script"
)

// The protocol stands in these files, each beside the Go code that runs it.
//
//go:embed *.lua *.luainc
var luaFiles embed.FS

var (
	infoScript    = script.Load(luaFiles, "lock.info")
	ttlsScript    = script.Load(luaFiles, "lock.ttls")
	publishScript = script.Load(luaFiles, "control.publish")
)

// A kind is what tells one type of exclusive lock from another.
type kind struct {
	name     string  // for Info
	take     *Script // the only one that can make an owner
	reenter  *Script
	release  *Script // also undoes a take that nobody waits for any more
	turn     *Script // nil if it does not pass between goroutines of a process,
	transfer *Script // nor this one
	renew    *Script
	force    *Script
}

// plainLock is Redisson's RLock.
var plainLock = &kind{
	name:     KindLock,
	take:     script.Load(luaFiles, "lock.take"),
	reenter:  script.Load(luaFiles, "lock.reenter"),
	release:  script.Load(luaFiles, "lock.release"),
	turn:     script.Load(luaFiles, "lock.turn"),
	transfer: script.Load(luaFiles, "lock.transfer"),
	renew:    script.Load(luaFiles, "lock.renew"),
	force:    script.Load(luaFiles, "lock.force"),
}
