package redlatch

import (
	"embed"

	"github.com/redlatch/redlatch/internal/script"
)

// The protocol stands in these files, each beside the Go code that runs it.
//
//go:embed *.lua
var luaFiles embed.FS

var (
	takeScript     = script.Load(luaFiles, "lock.take")
	reenterScript  = script.Load(luaFiles, "lock.reenter")
	releaseScript  = script.Load(luaFiles, "lock.release")
	turnScript     = script.Load(luaFiles, "lock.turn")
	transferScript = script.Load(luaFiles, "lock.transfer")
	renewScript    = script.Load(luaFiles, "lock.renew")
	forceScript    = script.Load(luaFiles, "lock.force")
	infoScript     = script.Load(luaFiles, "lock.info")
	publishScript  = script.Load(luaFiles, "control.publish")
)
