// Package lastuser closes what several use when the last of them has ended. It
// promises that this happens once, and that nobody waits for it longer than they
// want.
package lastuser

import (
	"errors"
	"io"
	"reflect"
	"sync"
	"time"
)

// ErrClosing is returned when closing takes longer than the user waits for it. It
// goes on.
var ErrClosing = errors.New("redlatch: Close: the driver was still being closed after Config.CloseTimeout")

var users = struct {
	mu sync.Mutex
	of map[io.Closer]int
}{of: map[io.Closer]int{}}

// Begin counts a user of something. The user calls end once. That of the last user
// closes what they share, if it is an io.Closer, waits for it no longer than d,
// and returns its error.
func Begin(used any) (end func(d time.Duration) error) {
	shared, ok := used.(io.Closer)
	if !ok {
		return func(time.Duration) error { return nil }
	}
	if !reflect.ValueOf(shared).Comparable() { // nobody could tell that two users share it
		return func(d time.Duration) error { return within(d, shared.Close) }
	}
	users.mu.Lock()
	defer users.mu.Unlock()
	users.of[shared]++
	return func(d time.Duration) error {
		if !last(shared) {
			return nil
		}
		return within(d, shared.Close)
	}
}

func last(shared io.Closer) bool {
	users.mu.Lock()
	defer users.mu.Unlock()
	users.of[shared]--
	if users.of[shared] > 0 {
		return false
	}
	delete(users.of, shared)
	return true
}

// within calls f, and waits for it no longer than d, and a millisecond if d is
// less.
func within(d time.Duration, f func() error) error {
	ended := make(chan error, 1)
	go func() { ended <- f() }()
	timer := time.NewTimer(max(d, time.Millisecond))
	defer timer.Stop()
	select {
	case err := <-ended:
		return err
	case <-timer.C:
		return ErrClosing
	}
}
