package locktest

import (
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch/internal/wire"
)

// Keys returns all keys, but for the notes by which live clients say who they are.
func (w *World) Keys() []string {
	return slices.DeleteFunc(w.Server.Keys(), func(key string) bool { return strings.HasPrefix(key, wire.Client+":") })
}

// WantLocksGone checks that nothing but tokens, which stay, and the marks of live
// clients, which have a TTL, is left.
func (w *World) WantLocksGone() {
	w.Helper()
	keys := slices.DeleteFunc(w.Keys(), func(key string) bool {
		return strings.HasPrefix(key, "redisson_lock_token:") || strings.HasPrefix(key, "redlatch_alive:")
	})
	if len(keys) > 0 {
		w.Errorf("left behind: %v", keys)
	}
}

// WantNothing checks that a fair lock has left nothing behind.
func (w *World) WantNothing() {
	w.Helper()
	synctest.Wait()
	if keys := w.Keys(); len(keys) > 0 {
		w.Errorf("left behind: %q", keys)
	}
	w.WantQuiet()
}

// WantNoKeys checks that no key is left.
func (w *World) WantNoKeys() {
	w.Helper()
	if keys := w.Keys(); len(keys) > 0 {
		w.Fatalf("left behind: %q", keys)
	}
}

// WantQuiet checks that nobody listens any more, once the spare places of a fair
// lock have gone.
func (w *World) WantQuiet() {
	w.Helper()
	synctest.Wait()
	time.Sleep(time.Second + time.Millisecond)
	synctest.Wait()
	for _, channels := range []string{"redisson*", "redlatch_barrier*"} {
		if left := w.Server.PubSubChannels(channels); len(left) > 0 {
			w.Errorf("still subscribed: %q", left)
		}
	}
}
