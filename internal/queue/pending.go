package queue

// A Pending counts what is pending. Its owner's mutex guards it.
type Pending struct {
	n    int
	none chan struct{} // closed when n is 0; nil unless somebody waits for that
}

// Add counts so many more, or fewer.
func (pending *Pending) Add(n int) {
	pending.n += n
	if pending.n == 0 && pending.none != nil {
		close(pending.none)
		pending.none = nil
	}
}

// Count returns how many are pending.
func (pending *Pending) Count() int { return pending.n }

// None returns a channel that is closed as soon as nothing is pending.
func (pending *Pending) None() <-chan struct{} {
	if pending.n == 0 {
		none := make(chan struct{})
		close(none)
		return none
	}
	if pending.none == nil {
		pending.none = make(chan struct{})
	}
	return pending.none
}
