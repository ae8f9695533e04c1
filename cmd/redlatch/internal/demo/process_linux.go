package demo

import "syscall"

// dieWithParent makes the kernel kill a worker when its parent dies. Without
// it the worker ends too, by the end of its standard input, but only when it
// next looks.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
