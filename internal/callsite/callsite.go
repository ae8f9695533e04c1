// Package callsite remembers where something was asked for: see [Site]. It
// promises that to remember it allocates nothing: the file and the line are looked
// up when somebody wants to read them.
package callsite

import (
	"runtime"
	"strconv"
)

// A Site is a call site, kept as one program counter until somebody asks.
type Site uintptr

// Caller returns the call site skip frames above its caller. To find it takes a
// good part of a hand-off's time.
func Caller(skip int) Site {
	var pc [1]uintptr
	runtime.Callers(skip+2, pc[:])
	return Site(pc[0])
}

// String returns file:line.
func (s Site) String() string {
	if s == 0 {
		return "unknown"
	}
	f, _ := runtime.CallersFrames([]uintptr{uintptr(s)}).Next()
	return f.File + ":" + strconv.Itoa(f.Line)
}
