package testserver

import (
	"errors"
	"os"
	"sync"
)

// The directories of all servers that run at one time are in one directory. A
// guard outlives this process by the moment that it takes to remove that
// directory: a test run that is killed, interrupted or timed out calls no cleanup.
var rooms struct {
	mu    sync.Mutex
	taken int
	base  string       // while any is taken
	leave func() error // sends the guard home
}

// newRoom makes the directory of one server.
func newRoom(k Kind) (dir string, err error) {
	rooms.mu.Lock()
	defer rooms.mu.Unlock()
	if rooms.taken == 0 {
		base, err := os.MkdirTemp("", "redlatch-servers-")
		if err != nil {
			return "", err
		}
		leave, err := Guard(base)
		if err != nil {
			return "", errors.Join(err, os.Remove(base))
		}
		rooms.base, rooms.leave = base, leave
	}
	rooms.taken++
	if dir, err = os.MkdirTemp(rooms.base, string(k)+"-"); err != nil {
		return "", errors.Join(err, vacateLocked())
	}
	return dir, nil
}

// leaveRoom removes a directory that newRoom made, and what is around it with
// the last one.
func leaveRoom(dir string) error {
	err := os.RemoveAll(dir)
	rooms.mu.Lock()
	defer rooms.mu.Unlock()
	return errors.Join(err, vacateLocked())
}

func vacateLocked() error {
	if rooms.taken--; rooms.taken > 0 {
		return nil
	}
	return errors.Join(os.RemoveAll(rooms.base), rooms.leave())
}
