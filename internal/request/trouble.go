package request

import (
	"sync/atomic"
	"time"
)

// A Trouble is why the server refuses what each of several callers wants that wait for one
// another, of whom one at a time asks: it has no memory, say. The others hear of it here,
// and fail together with that one. Its zero value is none. A nil Trouble notes nothing.
type Trouble struct {
	last atomic.Pointer[refusal] // nil: there is none
}

type refusal struct {
	err   error
	since time.Time // when the first of the attempts was sent that were refused in a row
}

// note notes that an attempt was refused that was sent then.
func (x *Trouble) note(err error, sent time.Time) {
	if x == nil {
		return
	}
	if last := x.last.Load(); last != nil {
		sent = last.since
	}
	x.last.Store(&refusal{err, sent})
}

// since returns since when the server has refused everything; zero: it does not.
func (x *Trouble) since() (since time.Time) {
	if x == nil {
		return since
	}
	if last := x.last.Load(); last != nil {
		since = last.since
	}
	return since
}

// Why returns why the server refuses what is asked; nil: it does not.
func (x *Trouble) Why() error {
	if last := x.last.Load(); last != nil {
		return last.err
	}
	return nil
}
