package fence

import "sync"

// A Guard guards anything inside this process. It remembers the highest token that
// it was shown, until the process ends. If you have stored the token elsewhere,
// Check it first in the next process.
//
// The zero Guard has been shown nothing. It is safe for concurrent use, and must
// not be copied after its first use.
type Guard struct {
	mu      sync.Mutex
	highest int64
}

// Check shows a token. It returns nil if the token is accepted: the guard refuses
// lower tokens from now on. It returns a *StaleError if a higher token has been
// shown, and ErrUnfenced if token is 0 or less. What the caller does after Check
// is not guarded, because a higher token may be shown meanwhile. Use Do for that.
func (g *Guard) Check(token int64) error {
	return g.Do(token, func() error { return nil })
}

// Do shows a token as Check does and, if it is accepted, calls f. All other calls
// of the guard wait until f has returned, so f must not use the guard. Do returns
// f's error as it is; the token remains shown.
func (g *Guard) Do(token int64, f func() error) error {
	if err := check(token); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if token < g.highest {
		return &StaleError{Token: token, Highest: g.highest}
	}
	g.highest = token
	return f()
}

// Highest returns the highest token shown so far, or 0.
func (g *Guard) Highest() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.highest
}

// A Register is a value in this process that only the latest holder of a lock
// can change.
//
// The zero Register has the zero value and has been shown no token. It is safe
// for concurrent use, and must not be copied after its first use. A value that
// refers to something else, such as a slice, guards the reference only.
type Register[T any] struct {
	guard Guard
	value T
}

// Set replaces the value. It returns a *StaleError if a higher token has been
// shown, and ErrUnfenced if token is 0 or less. After an error the value is
// unchanged.
func (r *Register[T]) Set(token int64, value T) error {
	return r.guard.Do(token, func() error {
		r.value = value
		return nil
	})
}

// Update replaces the value by the one that f returns, in one step. Every other
// call waits until f has returned, so f must not use the register. If f returns
// an error, Update returns it, and the value is unchanged. If the token is
// refused, Update does not call f, and its errors are Set's.
func (r *Register[T]) Update(token int64, f func(T) (T, error)) error {
	return r.guard.Do(token, func() error {
		value, err := f(r.value)
		if err == nil {
			r.value = value
		}
		return err
	})
}

// Get shows the token and returns the value. No holder with a lower token can
// change the value from now on. Its errors are Set's.
func (r *Register[T]) Get(token int64) (T, error) {
	var value T
	err := r.guard.Do(token, func() error {
		value = r.value
		return nil
	})
	return value, err
}

// Peek returns the value and the highest token shown so far, or 0. It is for
// readers that do not have the lock. What they see may be about to change.
func (r *Register[T]) Peek() (value T, highest int64) {
	r.guard.mu.Lock()
	defer r.guard.mu.Unlock()
	return r.value, r.guard.highest
}
