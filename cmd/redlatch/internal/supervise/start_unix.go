//go:build unix && !linux

package supervise

import "syscall"

// processAttributes are those of the command: a group of its own. That it dies
// with this process is left to the guard.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
