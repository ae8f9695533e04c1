package peer

import (
	"context"
	"time"
)

// LockToken is Lock of a fenced lock and returns the token. Redisson ignores
// the lease in this one: the watchdog keeps the lock.
func (l Lock) LockToken(ctx context.Context, lease time.Duration) (int64, error) {
	a, err := l.call(ctx, "lockAndGetToken", 0, lease)
	return a.Token, err
}

// TryLockToken is TryLock of a fenced lock and returns the token, or 0 if the
// lock was not to be had.
func (l Lock) TryLockToken(ctx context.Context, wait, lease time.Duration) (int64, error) {
	a, err := l.call(ctx, "tryLockAndGetToken", wait, lease)
	return a.Token, err
}

// Token returns the last token of a fenced lock, whoever got it, or 0.
func (l Lock) Token(ctx context.Context) (int64, error) {
	a, err := l.call(ctx, "getToken", 0, 0)
	return a.Token, err
}
