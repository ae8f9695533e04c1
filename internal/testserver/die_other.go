//go:build !linux

package testserver

import "os/exec"

// dieWithParent: only Linux can do this. Elsewhere a test that is killed leaves
// its servers behind.
func dieWithParent(*exec.Cmd) {}
