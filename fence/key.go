package fence

import (
	"context"
	"crypto/rand"
	"embed"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/script"
	"github.com/redlatch/redlatch/internal/wire"
)

//go:embed *.lua *.luainc
var luaFiles embed.FS

var (
	checkScript  = script.Load(luaFiles, "key.check")
	getScript    = script.Load(luaFiles, "key.get")
	setScript    = script.Load(luaFiles, "key.set")
	deleteScript = script.Load(luaFiles, "key.delete")
)

// A Key is a Redis string that only the latest holder of a lock can change. The
// value stands under its own name, where anybody can read it with GET. The highest
// token stands beside it, in the hash redlatch_fence:{key} (in a cluster, in the
// same slot), for ever or for as long as Remember says. The hash takes about
// 150 bytes, and must not be evicted. To remove both for good, DEL them when no
// earlier holder can be alive any more.
//
// Equal tokens are those of one holder, which may write as often as it likes. Its
// calls of Set and Delete in one process take effect in the order in which they
// were made. A request that reaches the server late, after a later call has been
// executed there, changes nothing. If several processes share one token, the last
// request to arrive wins.
//
// So you may repeat a call that failed with any error but ErrStale and
// ErrUnfenced. The call that failed may have taken effect. It may also take effect
// later, until the next Set or Delete of this process with the same token has
// succeeded, or a higher token has been shown.
//
// A Key is safe for concurrent use. Any number of them may name the same key.
type Key struct {
	redis    driver.Redis
	name     string
	keys     []string // the fence
	both     []string // the key and the fence
	remember string   // in ms
}

// A KeyOption changes how a Key works. The zero value changes nothing.
type KeyOption struct{ remember time.Duration }

// Remember makes the key forget its highest token when no token has been
// accepted for d, so that fences do not pile up where keys come and go. The key
// then no longer recognises a stale holder or request that is older than d. So d
// must be longer than the longest time for which a process, a machine or a
// message may be held up. It is at least an hour. Without Remember the key forgets
// nothing.
//
// If several Keys of this name were made, the longest time counts. So a token that
// a Key without Remember has shown is kept for ever, until EXPIRE or DEL of the
// hash.
func Remember(d time.Duration) KeyOption { return KeyOption{remember: d} }

const minRemember = time.Hour

// NewKey guards the string with this name on the server that r is a driver for.
// key must not be the name of the lock, which is the lock's own key. NewKey sends
// nothing.
func NewKey(r driver.Redis, key string, options ...KeyOption) (*Key, error) {
	if r == nil {
		return nil, errors.New("fence: NewKey: no driver")
	}
	if err := wire.CheckName(key); err != nil {
		return nil, fmt.Errorf("fence: NewKey: %w", err)
	}
	fence := wire.Prefix(wire.Fence, key)
	k := &Key{redis: r, name: key, keys: []string{fence}, both: []string{key, fence}, remember: "0"}
	for _, o := range options {
		if o == (KeyOption{}) {
			continue
		}
		if o.remember < minRemember {
			return nil, fmt.Errorf("fence: Remember(%v): it must be at least %v", o.remember, minRemember)
		}
		k.remember = millis(o.remember)
	}
	return k, nil
}

// The fences know this process as one writer. Its calls are numbered, so that a
// fence recognises a late one.
var (
	writer = "writer:" + rand.Text()
	calls  atomic.Int64
)

// nextCall returns the number of a call of Set or Delete.
func nextCall() string { return strconv.FormatInt(calls.Add(1), 10) }

// Set shows the token and, if it is accepted, sets the value, in one atomic step.
// The value expires after ttl (rounded up to a millisecond), or never if ttl is
// 0.
//
// It returns a *StaleError if a higher token has been shown, and ErrUnfenced if
// token is 0 or less. Then nothing was changed. An error of the server or the
// driver is a *driver.RunError, and redlatch.IsRetryable knows it. If ctx ends
// first, Set returns its error, and the request goes on. Set does not overwrite a
// key that holds anything but a string (WRONGTYPE).
func (k *Key) Set(ctx context.Context, token int64, value string, ttl time.Duration) error {
	if ttl < 0 {
		return fmt.Errorf("fence: Set of key %q: the ttl is %v; it must be positive, or 0 for ever", k.name, ttl)
	}
	_, err := k.run(ctx, setScript, k.both, token, writer, nextCall(), value, millis(ttl))
	return err
}

// Delete shows the token and, if it is accepted, deletes the value. The highest
// token stays. It is not an error if there is no value. Its errors are Set's.
func (k *Key) Delete(ctx context.Context, token int64) error {
	_, err := k.run(ctx, deleteScript, k.both, token, writer, nextCall())
	return err
}

// Get shows the token and, if it is accepted, returns the value and whether there
// is one. No holder with a lower token can change the value from now on. Its
// errors are Set's. Readers that do not have the lock use GET.
func (k *Key) Get(ctx context.Context, token int64) (value string, ok bool, err error) {
	reply, err := k.run(ctx, getScript, k.both, token)
	if err != nil || len(reply.List) == 0 || reply.List[0].Kind == driver.ReplyNil {
		return "", false, err
	}
	return reply.List[0].Str, true, nil
}

// Check shows the token and does nothing else: the key refuses lower tokens from
// now on. Its errors are Set's. Check is not enough to guard something that Set
// cannot write, such as a hash, because a higher token may be shown between Check
// and the write.
func (k *Key) Check(ctx context.Context, token int64) error {
	_, err := k.run(ctx, checkScript, k.keys, token)
	return err
}

// run runs a script whose first two arguments are a token and how long to
// remember it.
func (k *Key) run(ctx context.Context, s *script.Script, keys []string, token int64, args ...string) (driver.Reply, error) {
	if ctx == nil {
		return driver.Reply{}, errNilContext
	}
	if err := check(token); err != nil {
		return driver.Reply{}, err
	}
	args = append([]string{strconv.FormatInt(token, 10), k.remember}, args...)
	reply, err := k.send(ctx, s, keys, args)
	switch {
	case err != nil:
		return driver.Reply{}, fmt.Errorf("fence: %s of key %q: %w", s.Name(), k.name, err)
	case reply.Kind == driver.ReplyInt && reply.Int == 1, len(reply.List) == 1:
		return reply, nil
	case reply.Kind != driver.ReplyString:
		return driver.Reply{}, fmt.Errorf("fence: unexpected answer %s to %s", wire.Quote(fmt.Sprintf("%+v", reply)), s.Name())
	}
	highest, err := strconv.ParseInt(reply.Str, 10, 64)
	if err != nil {
		return driver.Reply{}, fmt.Errorf("fence: the fence of key %q is damaged: its token is %s", k.name, wire.Quote(reply.Str))
	}
	return driver.Reply{}, &StaleError{Token: token, Highest: highest}
}

// send runs a script, and returns when ctx ends. It gives the driver a context
// that does not end: several drivers close a shared connection when a context
// ends.
func (k *Key) send(ctx context.Context, s *script.Script, keys, args []string) (driver.Reply, error) {
	if err := ctx.Err(); err != nil {
		return driver.Reply{}, fmt.Errorf("not sent: %w", err)
	}
	if ctx.Done() == nil {
		return k.redis.Run(ctx, s.Script, keys, args)
	}
	type answer struct {
		reply driver.Reply
		err   error
	}
	answers := make(chan answer, 1)
	go func() { // for as long as the driver's own time-outs let it
		reply, err := k.redis.Run(context.WithoutCancel(ctx), s.Script, keys, args)
		answers <- answer{reply, err}
	}()
	select {
	case a := <-answers:
		return a.reply, a.err
	case <-ctx.Done():
		return driver.Reply{}, fmt.Errorf("no answer yet, it may still be executed: %w", ctx.Err())
	}
}

// millis is d in ms, rounded up.
func millis(d time.Duration) string {
	ms := d / time.Millisecond
	if d%time.Millisecond > 0 {
		ms++
	}
	return strconv.FormatInt(int64(ms), 10)
}
