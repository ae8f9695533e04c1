package redlatch

import "github.com/redlatch/redlatch/internal/census"

// An Identity says who a client is, by its own word.
type Identity struct {
	Name    string            // what the program is for, such as "billing"; nothing unless it is set
	Program string            // zero means the base name of the running program
	Host    string            // zero means the name that the operating system has
	PID     int               // zero means that of the process
	Labels  map[string]string // at most 16; nothing unless they are set
}

// String returns "billing@host-7 pid 4121": the name, or else the program, the
// host and the process. What is not known is left out.
func (i Identity) String() string { return census.Identity(i).String() }
