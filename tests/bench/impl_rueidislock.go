package main

import (
	"context"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

var rueidislockDefault = implementation{
	name:     "rueidislock",
	settings: "rueidislock of " + rueidisVersion() + " with its defaults: three keys for a lock, of which it needs two. It has no fair lock, so its only lock is compared with fair locks",
	kind:     peer,
	locks:    []lockType{plainLock, fairLock},
	open:     openRueidislock(rueidislock.LockerOption{}),
}

var rueidislockOneKey = implementation{
	name:     "rueidislock, 1 key",
	settings: "the same with KeyMajority 1, one key for a lock",
	kind:     peer,
	locks:    []lockType{plainLock, fairLock},
	open:     openRueidislock(rueidislock.LockerOption{KeyMajority: 1}),
}

func openRueidislock(opt rueidislock.LockerOption) func(job) (locker, error) {
	return func(j job) (locker, error) {
		opt := opt
		opt.ClientOption = rueidis.ClientOption{InitAddress: []string{j.Addr}}
		client, err := rueidislock.NewLocker(opt)
		if err != nil {
			return nil, err
		}
		return &rueidislockLocker{client: client, keys: j.keys(), held: make([]padded[context.CancelFunc], j.Scenario.Goroutines)}, nil
	}
}

type rueidislockLocker struct {
	client rueidislock.Locker
	keys   []string
	held   []padded[context.CancelFunc]
}

func (l *rueidislockLocker) acquire(ctx context.Context, g int) (err error) {
	_, l.held[g].value, err = l.client.WithContext(ctx, l.keys[g])
	return err
}

// release returns when all keys are deleted.
func (l *rueidislockLocker) release(_ context.Context, g int) error {
	l.held[g].value()
	return nil
}

func (l *rueidislockLocker) close() { l.client.Close() }
