//go:build !unix

package testserver

import (
	"errors"
	"os"
)

var errNoPause = errors.New("this system cannot pause a process")

func pause(*os.Process) error  { return errNoPause }
func resume(*os.Process) error { return errNoPause }
