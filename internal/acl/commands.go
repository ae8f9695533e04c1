package acl

import "strings"

// A Command is one that redlatch sends, or that its scripts use, with arguments
// that do no harm. K stands for a key, and C for a channel.
type Command struct {
	Args  string
	By    string // who uses it
	since string // the first Redis that knows it; empty: all that are served
	watch bool   // whoever only looks sends it, too

	Writes bool // of those in scripts: it changes keys
}

// Sharded says whether only servers with sharded Pub/Sub know it.
func (c Command) Sharded() bool { return c.since == "7.0" }

// right is what ACLs call it.
func (c Command) right() string {
	words := strings.Fields(strings.ToLower(c.Args))
	switch words[0] {
	case "acl", "client", "cluster", "config", "pubsub", "sentinel":
		return words[0] + "|" + words[1]
	}
	return words[0]
}

// Locks uses what every lock uses; Turns what only tells a process that others
// wait.
const (
	Locks = "locks"
	Turns = "turns between processes, which the clock gives instead"
)

// InScripts are the commands that scripts use. DEL is the first: without it
// nothing that is tried is cleaned up.
var InScripts = []Command{
	{Args: "DEL K", By: Locks, Writes: true},
	{Args: "HKEYS K", By: Locks},
	{Args: "HEXISTS K f", By: Locks},
	{Args: "HSET K f 1", By: Locks, Writes: true},
	{Args: "HDEL K f", By: Locks, Writes: true},
	{Args: "PTTL K", By: Locks, watch: true},
	{Args: "PEXPIRE K 1000", By: Locks, Writes: true},
	{Args: "PUBSUB NUMSUB K", By: Turns, watch: true},
	{Args: "PUBSUB SHARDNUMSUB K", By: Turns, since: "7.0", watch: true},
	{Args: "PUBLISH C doctor", By: Locks, watch: true},
	{Args: "SPUBLISH C doctor", By: Locks, since: "7.0"},
	{Args: "HGETALL K", By: "ls, show and Info", watch: true},
	{Args: "GETRANGE K 0 0", By: "ls, show", watch: true},
	{Args: "GET K", By: "ls, show, fencing tokens, semaphores, latches and rate limiters", watch: true},
	{Args: "LRANGE K 0 0", By: "ls, show and fair locks", watch: true},
	{Args: "ZRANGE K 0 0", By: "ls, show, fair locks, permits and rate limiters", watch: true},
	{Args: "TIME", By: "ls, show, fair locks, read-write locks, group locks, fencing tokens, permits, rate limiters and barriers", watch: true},
	{Args: "SET K 1 PX 1000", By: "read locks, fencing tokens, semaphores, latches and rate limiters", Writes: true},
	{Args: "EXISTS K", By: "read-write locks, fencing tokens, semaphores, permits, rate limiters and barriers"},
	{Args: "INCR K", By: "fencing tokens", Writes: true},
	{Args: "HGET K f", By: "read-write locks, group locks, rate limiters and barriers"},
	{Args: "HLEN K", By: Locks, watch: true},
	{Args: "HRANDFIELD K", By: "fair locks"},
	{Args: "LINDEX K 0", By: "fair locks"},
	{Args: "LPOP K", By: "fair locks", Writes: true},
	{Args: "LREM K 1 f", By: "fair locks", Writes: true},
	{Args: "LSET K 0 f", By: "fair locks", Writes: true},
	{Args: "RPUSH K f", By: "fair locks", Writes: true},
	{Args: "ZADD K 1 f", By: "fair locks, permits, rate limiters and barriers", Writes: true},
	{Args: "ZREM K f", By: "fair locks, read-write locks, permits and rate limiters", Writes: true},
	{Args: "ZREMRANGEBYSCORE K 0 1", By: "fair locks, read-write locks and permits", Writes: true},
	{Args: "ZREMRANGEBYRANK K 0 0", By: "rate limiters", Writes: true},
	{Args: "ZSCORE K f", By: "fair locks, permits, rate limiters and barriers"},
	{Args: "ZRANGEBYSCORE K 0 1", By: "read-write locks, rate limiters and barriers", watch: true},
	{Args: "ZCARD K", By: "fair locks, read-write locks, permits and rate limiters", watch: true},
	{Args: "ZCOUNT K 0 1", By: "permits and rate limiters", watch: true},
	{Args: "ZMSCORE K f", By: "fair locks and rate limiters"},
	{Args: "HMGET K f", By: "read-write locks, group locks, rate limiters and barriers", watch: true},
	{Args: "PERSIST K", By: "fencing tokens of elections, permits, rate limiters and Persist", Writes: true},
	{Args: "DECRBY K 1", By: "semaphores, permits and latches", Writes: true},
	{Args: "INCRBY K 1", By: "semaphores and permits", Writes: true},
	{Args: "TYPE K", By: "ls, show, package fence, and errors that name a key of another type", watch: true},
}

// ByDrivers are the commands that reach servers other than in scripts. (HELLO and
// AUTH need no right.)
var ByDrivers = []Command{
	{Args: "EVALSHA", By: Locks, watch: true},
	{Args: "EVAL", By: Locks, watch: true},
	{Args: "SUBSCRIBE C", By: Locks, watch: true},
	{Args: "UNSUBSCRIBE C", By: Locks, watch: true},
	{Args: "SSUBSCRIBE C", By: Locks, since: "7.0"},
	{Args: "SUNSUBSCRIBE C", By: Locks, since: "7.0", watch: true},
	{Args: "PUNSUBSCRIBE", By: "rueidis and valkey-go, for some connections that they use again", watch: true},
	{Args: "DISCARD", By: "the same", watch: true},
	{Args: "PING", By: "subscriptions, and the search for dead connections", watch: true},
	{Args: "SELECT 1", By: "databases other than 0", watch: true},
	{Args: "CLIENT SETNAME name", By: "client_name", watch: true},
	{Args: "CLIENT SETINFO LIB-NAME name", By: "every connection", since: "7.2", watch: true},
	{Args: "ROLE", By: "Sentinel, the listing of a cluster, and replica acknowledgement", watch: true},
	{Args: "WAIT 0 1", By: "replica acknowledgement"},
	{Args: "CLUSTER SLOTS", By: "clusters", watch: true},
	{Args: "CLUSTER SHARDS", By: "clusters of servers that call themselves 8 or newer, by rueidis", since: "7.2", watch: true},
	{Args: "COMMAND", By: "clusters, by go-redis", watch: true},
	{Args: "ASKING", By: "clusters, while slots move", watch: true},
}

// ToList are the commands that list what there is. They show the names of all
// keys, whatever a user may do with them.
var ToList = []Command{{Args: "SCAN 0", By: "Locks, Objects, Counters and ls"}}

// ByDoctor are the commands that only redlatch doctor sends.
var ByDoctor = []Command{
	{Args: "INFO"},
	{Args: "CONFIG GET name"},
	{Args: "CLUSTER INFO"},
	{Args: "CLUSTER MYID"},
	{Args: "DBSIZE"},
	{Args: "PUBSUB CHANNELS"},
	{Args: "PUBSUB SHARDCHANNELS", since: "7.0"},
	{Args: "ACL DRYRUN default PEXPIREAT K 1", since: "7.0"},
}

// ToSentinels are the commands that reach sentinels, which have users of their
// own.
var ToSentinels = []Command{
	{Args: "PING"},
	{Args: "CLIENT SETNAME name"},
	{Args: "CLIENT SETINFO LIB-NAME name", since: "7.2"},
	{Args: "SUBSCRIBE C"},
	{Args: "UNSUBSCRIBE C"},
	{Args: "SENTINEL GET-MASTER-ADDR-BY-NAME name"},
	{Args: "SENTINEL SENTINELS name"},
}
