package queue

import "iter"

// A Line is callers in the order in which they came. Some of them only try: they
// do not wait. Its zero value is an empty line. It is not locked.
type Line[C any] struct {
	first, last *Place[C]
	length      int
	tries       int
}

// A Place is where a caller stands, in one line at a time. It belongs to the
// caller, so that to line up allocates nothing.
type Place[C any] struct {
	caller     C
	tries      bool
	taken      bool
	prev, next *Place[C]
}

// Taken says whether the caller stands in a line.
func (p *Place[C]) Taken() bool { return p.taken }

// Len returns how many callers there are.
func (l *Line[C]) Len() int { return l.length }

// Tries returns how many of them only try.
func (l *Line[C]) Tries() int { return l.tries }

// First returns the first caller, or nothing if there is none.
func (l *Line[C]) First() (first C) {
	if l.first != nil {
		first = l.first.caller
	}
	return first
}

// All returns the callers in their order. While one is looked at, it may be
// removed, and no other one.
func (l *Line[C]) All() iter.Seq[C] {
	return func(yield func(C) bool) {
		for p := l.first; p != nil; {
			next := p.next // p may be removed
			if !yield(p.caller) {
				return
			}
			p = next
		}
	}
}

// Push puts a caller, whose place p is, at the end.
func (l *Line[C]) Push(p *Place[C], caller C, tries bool) {
	*p = Place[C]{caller: caller, tries: tries, taken: true, prev: l.last}
	if l.last == nil {
		l.first = p
	} else {
		l.last.next = p
	}
	l.last = p
	l.count(p, 1)
}

// Remove takes a caller out of the line, from wherever it stands.
func (l *Line[C]) Remove(p *Place[C]) {
	if p.prev == nil {
		l.first = p.next
	} else {
		p.prev.next = p.next
	}
	if p.next == nil {
		l.last = p.prev
	} else {
		p.next.prev = p.prev
	}
	l.count(p, -1)
	*p = Place[C]{}
}

func (l *Line[C]) count(p *Place[C], n int) {
	l.length += n
	if p.tries {
		l.tries += n
	}
}
