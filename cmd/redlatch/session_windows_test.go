package main

import "syscall"

func newSession() *syscall.SysProcAttr { return nil }
