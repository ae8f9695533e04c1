//go:build unix

package testserver

import (
	"os/exec"
	"syscall"
)

// What the guard does when its input ends. A server that is dying with us may
// still be writing.
const guardScript = `trap '' HUP INT QUIT TERM
read -r _
for i in 1 2 3 4 5 6 7 8 9 10; do rm -rf -- "$1" && exit 0; sleep 0.1; done
exit 1`

// Guard starts a process that removes dir when leave is called, and when this
// process has ended, however it did: the system closes a pipe then. (Windows
// has no such guard, and leave does nothing.)
func Guard(dir string) (leave func() error, err error) {
	// A go test that waits for the end of its test's output must not wait for
	// this process, so it inherits none.
	cmd := exec.Command("/bin/sh", "-c", guardScript, "guard", dir)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/bin:/bin"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // away from Ctrl-C
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return func() error {
		_ = in.Close()
		return cmd.Wait()
	}, nil
}
