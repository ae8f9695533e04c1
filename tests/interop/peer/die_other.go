//go:build !linux

package peer

import "syscall"

// DieWithUs does nothing here: the process ends when its input does.
func DieWithUs() *syscall.SysProcAttr { return nil }
