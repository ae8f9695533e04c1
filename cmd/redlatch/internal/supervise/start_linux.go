package supervise

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// processAttributes are those of the command: a group of its own, and death
// with this process.
func processAttributes() *syscall.SysProcAttr {
	// Orphans of the command become our children, so that their end is seen at
	// once, and also in a container whose first process reaps nobody: there an
	// ended group would look alive for ever. An old kernel that refuses costs
	// only that.
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
