// Package commands says which commands of scripts write, for servers in tests that
// refuse them as a real one does. It promises what real servers do: tests/sim/real
// asks them.
package commands

import "strings"

// Commands that write: Growing need memory, and are refused when there is none,
// unless the script has written before. Writing do not.
var (
	Growing = words("SET HSET HSETNX HINCRBY INCR INCRBY DECR DECRBY RPUSH LSET ZADD ZINCRBY")
	Writing = words("DEL HDEL PEXPIRE PEXPIREAT PERSIST LPOP LREM ZREM ZREMRANGEBYSCORE ZREMRANGEBYRANK UNLINK")
)

// Spreading commands reach replicas also if they leave a key that is there as it
// was. Others do only if they change something.
var Spreading = words("SET HSET HINCRBY INCR INCRBY DECR DECRBY RPUSH LSET PEXPIRE PEXPIREAT")

func words(text string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(text) {
		set[word] = true
	}
	return set
}
