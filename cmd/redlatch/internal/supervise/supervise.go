package supervise

import (
	"os"
	"time"
)

// A Command is what Run runs.
type Command struct {
	Path string   // the executable
	Args []string // Args[0] included
	Env  []string

	// Signals is a channel that Notify was called with. What it already holds
	// is forwarded first.
	Signals chan os.Signal

	// Stop, when closed, ends the command: TERM to its group, and KILL when
	// the group has not ended KillAfter later; at once if KillAfter is 0.
	Stop      <-chan struct{}
	KillAfter time.Duration

	// MayContinue is asked before a stopped group is continued after this
	// process itself had been stopped, which may have taken any time. On false
	// the command is ended as by Stop. Nil means yes.
	MayContinue func() bool

	// Notice shows one line to the user. Nil shows nothing.
	Notice func(string)
}

// A Result says how the command ended.
type Result struct {
	// Code is its exit code, or 128+n if signal n ended it.
	Code int
	// Interrupted is true if Ctrl-C at the terminal ended it, and was sent to
	// this process as well.
	Interrupted bool
	// Stopped is true if it was told to end by Stop or MayContinue.
	Stopped bool
}
