package peer

import "syscall"

// DieWithUs makes the kernel kill the process when ours ends, however it ends,
// even if the process is stopped. In a process group of its own it does not
// get the interrupts of our terminal.
func DieWithUs() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
