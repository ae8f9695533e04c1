package queue

// A Pending counts what is pending. Its owner's mutex guards it.
type Pending struct {
	n    int
	none chan struct{} // closed when n is 0; nil unless somebody waits for that
}

// Add counts so many more, or fewer.
func (p *Pending) Add(n int) {
	p.n += n
	if p.n == 0 && p.none != nil {
		close(p.none)
		p.none = nil
	}
}

// Count returns how many are pending.
func (p *Pending) Count() int { return p.n }

// None returns a channel that is closed as soon as nothing is pending.
func (p *Pending) None() <-chan struct{} {
	if p.n == 0 {
		none := make(chan struct{})
		close(none)
		return none
	}
	if p.none == nil {
		p.none = make(chan struct{})
	}
	return p.none
}
