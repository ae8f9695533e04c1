package testserver

import (
	"os/exec"
	"syscall"
)

// dieWithParent makes the system kill the child when the test's process dies,
// however it dies. The group of its own keeps a Ctrl-C at the terminal away
// from it until the test has cleaned up.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
