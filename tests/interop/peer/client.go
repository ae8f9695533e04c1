package peer

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// The kinds of lock that the Java side knows. What a version of Redisson lacks
// answers with UnsupportedOperationException.
const (
	Plain        = "lock"
	NonReentrant = "nonreentrant"
	Fair         = "fair"
	FairOnce     = "nonreentrantfair"
	Fenced       = "fenced"
	Spin         = "spin"
	Read         = "read"
	Write        = "write"
)

// Options say how a Redisson client connects.
type Options struct {
	// Addr is the "host:port" of a single server.
	Addr string
	// Sentinels are, instead of Addr, some who know where Master is.
	Sentinels []string
	Master    string
	// Cluster is, instead of Addr, some nodes of a cluster.
	Cluster []string
	// Sharded is Redisson's shardedSubscriptionMode in a cluster, which it has
	// since 3.29. Default Redisson's, AUTO.
	Sharded string
	// Watchdog is Redisson's lockWatchdogTimeout. Default 30 s.
	Watchdog time.Duration
	// Timeout is how long it waits for an answer of a server. Default Redisson's, 3 s.
	Timeout time.Duration
	// Name is set with CLIENT SETNAME. Default none.
	Name string
	// Idle is how many connections to a server it makes at once. Default
	// Redisson's, 24.
	Idle int
}

// A Client is one RedissonClient in the Java process.
type Client struct {
	// UUID is Redisson's client id, the first part of its owner fields.
	UUID string

	peer   *Peer
	handle string
}

// Open makes a RedissonClient and connects it.
func (p *Peer) Open(ctx context.Context, o Options) (*Client, error) {
	p.mu.Lock()
	p.open++
	c := &Client{peer: p, handle: "client-" + strconv.Itoa(p.open)}
	p.mu.Unlock()
	r := request{
		Op:         "open",
		Client:     c.handle,
		Thread:     c.handle, // several may open at the same time
		WatchdogMs: o.Watchdog.Milliseconds(),
		TimeoutMs:  o.Timeout.Milliseconds(),
		Idle:       o.Idle,
		ClientName: o.Name,
		Master:     o.Master,
		Sharded:    o.Sharded,
		Sentinels:  urls(o.Sentinels),
		Cluster:    urls(o.Cluster),
	}
	if o.Addr != "" {
		r.URL = "redis://" + o.Addr
	}
	a, err := p.call(ctx, r)
	if err != nil {
		return nil, err
	}
	if a.Version != p.Version {
		return nil, fmt.Errorf("the peer runs Redisson %s, not %s", a.Version, p.Version)
	}
	c.UUID = a.UUID
	return c, nil
}

func urls(addrs []string) (all []string) {
	for _, addr := range addrs {
		all = append(all, "redis://"+addr)
	}
	return all
}

// Close shuts the RedissonClient down. Redisson releases no locks then.
func (c *Client) Close(ctx context.Context) error {
	_, err := c.peer.call(ctx, request{Op: "close", Client: c.handle, Thread: c.handle})
	return err
}

// Thread returns a logical thread of the client, one Java thread under that
// name for the life of the client. Its ops run one after the other.
func (c *Client) Thread(name string) Thread {
	return Thread{client: c, name: c.handle + "/" + name}
}

// A Thread is what owns locks in Redisson.
type Thread struct {
	client *Client
	name   string
}

// Owner returns the field that Redisson writes for this thread.
func (t Thread) Owner(ctx context.Context) (string, error) {
	a, err := t.client.peer.call(ctx, request{Op: "owner", Client: t.client.handle, Thread: t.name})
	return a.Owner, err
}

// EntryNames returns the names of what Redisson keeps about one entry of a map, a
// set and a multimap, by the methods that have them.
func (t Thread) EntryNames(ctx context.Context, object, key string) (map[string]string, error) {
	a, err := t.client.peer.call(ctx, request{Op: "entryNames", Client: t.client.handle, Thread: t.name, Name: object, Values: []string{key}})
	return a.Names, err
}

// Lock returns a lock as this thread sees it.
func (t Thread) Lock(kind, name string) Lock { return Lock{thread: t, kind: kind, name: name} }

// A Lock is an RLock in the hands of one thread.
type Lock struct {
	thread     Thread
	kind, name string
	parts
}

func (l Lock) call(ctx context.Context, op string, wait, lease time.Duration) (answer, error) {
	return l.thread.client.peer.call(ctx, request{
		Op:      op,
		Client:  l.thread.client.handle,
		Thread:  l.thread.name,
		Kind:    l.kind,
		Name:    l.name,
		WaitMs:  wait.Milliseconds(),
		LeaseMs: lease.Milliseconds(),
		Members: l.members,
		Values:  l.values,
	})
}

// Lock waits for the lock. With a lease of 0 the watchdog keeps it.
func (l Lock) Lock(ctx context.Context, lease time.Duration) error {
	_, err := l.call(ctx, "lock", 0, lease)
	return err
}

// TryLock waits at most wait. With a lease of 0 the watchdog keeps the lock.
func (l Lock) TryLock(ctx context.Context, wait, lease time.Duration) (bool, error) {
	a, err := l.call(ctx, "tryLock", wait, lease)
	return a.OK, err
}

// Unlock gives one hold back. It fails with IllegalMonitorStateException if the
// thread does not hold the lock.
func (l Lock) Unlock(ctx context.Context) error {
	_, err := l.call(ctx, "unlock", 0, 0)
	return err
}

// ForceUnlock releases the lock whoever holds it, and says whether anyone did.
func (l Lock) ForceUnlock(ctx context.Context) (bool, error) {
	a, err := l.call(ctx, "forceUnlock", 0, 0)
	return a.OK, err
}

// IsLocked says whether anyone holds the lock.
func (l Lock) IsLocked(ctx context.Context) (bool, error) {
	a, err := l.call(ctx, "isLocked", 0, 0)
	return a.OK, err
}

// IsHeld says whether this thread holds the lock.
func (l Lock) IsHeld(ctx context.Context) (bool, error) {
	a, err := l.call(ctx, "isHeldBy", 0, 0)
	return a.OK, err
}

// HoldCount returns how often this thread holds the lock.
func (l Lock) HoldCount(ctx context.Context) (int, error) {
	a, err := l.call(ctx, "holdCount", 0, 0)
	return a.Count, err
}

// RemainTTL returns how long the lock lasts, as Redisson sees it; -2 ms means
// that there is none.
func (l Lock) RemainTTL(ctx context.Context) (time.Duration, error) {
	a, err := l.call(ctx, "remainTTL", 0, 0)
	return time.Duration(a.TTL) * time.Millisecond, err
}
