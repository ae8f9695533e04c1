//go:build !linux

package demo

import "syscall"

// dieWithParent leaves a worker's end to the end of its standard input.
func dieWithParent() *syscall.SysProcAttr { return nil }
