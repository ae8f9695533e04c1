// Package lua holds the protocol: every script, and the fragments that scripts
// include. The header of each script says what it does, its keys and arguments,
// and what it answers; tests compare that with its body.
package lua

import (
	"embed"

	"github.com/redlatch/redlatch/internal/script"
)

//go:embed *.lua *.luainc
var files embed.FS

func load(name string) *script.Script { return script.Load(files, name) }
