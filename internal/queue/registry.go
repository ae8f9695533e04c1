package queue

import (
	"runtime"
	"sync"
	"time"
)

// A Registry has what the callers of a process share, by key: each thing is made
// for its first user, and forgotten when it has none, unless it is to be kept for
// a while. The zero value is an empty registry.
type Registry[K comparable, V interface{ users() *Users }] struct {
	mu   sync.Mutex // guards m and the users of each
	m    map[K]V
	used *Pending // how many have users; nil until somebody asks Idle
}

// Users are embedded in what a Registry has.
type Users struct {
	n     int
	kept  bool      // there is a timer, and nothing is forgotten before it
	until time.Time // for how long it is kept
}

func (u *Users) users() *Users { return u }

// Get returns what there is by that key, or what build makes. The caller is a user
// of it until it calls Put.
func (r *Registry[K, V]) Get(key K, build func() V) V {
	r.mu.Lock()
	defer r.mu.Unlock()
	x, ok := r.m[key]
	if !ok {
		x = build()
		if r.m == nil {
			r.m = map[K]V{}
		}
		r.m[key] = x
	}
	u := x.users()
	if u.n++; u.n == 1 && r.used != nil {
		r.used.Add(1)
	}
	return x
}

// Retain adds a user to what the caller uses.
func (r *Registry[K, V]) Retain(x V) {
	r.mu.Lock()
	defer r.mu.Unlock()
	x.users().n++
}

// Put takes a user away, and says whether x was forgotten. If it was the last
// user, idle is called before anybody can become the next one; nil does nothing.
func (r *Registry[K, V]) Put(key K, x V, idle func()) (forgotten bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	u := x.users()
	u.n--
	if u.n == 0 && idle != nil {
		idle()
	}
	if u.n == 0 && r.used != nil {
		r.used.Add(-1)
	}
	return r.forget(key, u)
}

// Keep keeps x, which the caller uses, for d from now on at least, even if nobody
// uses it.
func (r *Registry[K, V]) Keep(key K, x V, d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	u := x.users()
	if until := time.Now().Add(d); until.After(u.until) {
		u.until = until
	}
	if !u.kept {
		u.kept = true
		r.alarm(key, u, d)
	}
}

// alarm ends the keeping, but not before it is over.
func (r *Registry[K, V]) alarm(key K, u *Users, d time.Duration) {
	time.AfterFunc(d, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if left := time.Until(u.until); left > 0 {
			r.alarm(key, u, left)
			return
		}
		u.kept = false
		r.forget(key, u)
	})
}

// Kept says whether x is to be kept.
func (r *Registry[K, V]) Kept(x V) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return x.users().kept
}

// forget forgets what nobody uses, unless it is to be kept. What has a user or a
// timer is in m, so there is nothing else by its key.
func (r *Registry[K, V]) forget(key K, u *Users) bool {
	if u.n > 0 || u.kept {
		return false
	}
	delete(r.m, key)
	return true
}

// Idle returns a channel that is closed as soon as nothing is used.
func (r *Registry[K, V]) Idle() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.used == nil {
		r.used = &Pending{}
		for _, x := range r.m {
			if x.users().n > 0 {
				r.used.Add(1)
			}
		}
	}
	return r.used.None()
}

// Find returns what there is by that key, or nothing. The caller does not become a
// user.
func (r *Registry[K, V]) Find(key K) V {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.m[key]
}

// SomeAtOnce is how many things are looked at before others may have the mutex.
const SomeAtOnce = 256

// All returns all that there is for as long as it looks; what comes or goes
// meanwhile may be there. The registry is not locked for longer than it takes to
// look at a few.
func (r *Registry[K, V]) All() []V {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]V, 0, len(r.m))
	for _, x := range r.m {
		if all = append(all, x); len(all)%SomeAtOnce == 0 {
			Breathe(&r.mu)
		}
	}
	return all
}

// Breathe lets others have a mutex of the caller's for a moment. A goroutine that
// only unlocks a mutex has it again before the one that was woken runs.
func Breathe(mu *sync.Mutex) {
	mu.Unlock()
	runtime.Gosched()
	mu.Lock()
}

// Select returns all of which is says so. The registry is locked meanwhile.
func (r *Registry[K, V]) Select(is func(V) bool) (all []V) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, x := range r.m {
		if is(x) {
			all = append(all, x)
		}
	}
	return all
}
