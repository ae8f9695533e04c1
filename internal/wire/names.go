package wire

import (
	"errors"
	"fmt"
	"strings"
)

// Prefixes of Redisson's side keys and channels.
const (
	LockChannel = "redisson_lock__channel" // two underscores before "channel"
	LockToken   = "redisson_lock_token"
	LockAlive   = "redlatch_alive" // not Redisson's; fair: sorted set, when each client was last heard of
	Fence       = "redlatch_fence" // not Redisson's; package fence: hash, the highest token shown to a guarded key

	Control = "redlatch_control" // not Redisson's: the channel of a client, whose id comes behind a colon
	Revoke  = "redlatch_revoke"  // not Redisson's: hash, the owners that somebody has asked to let go of a lock

	Client  = "redlatch_client" // not Redisson's: string, who a client is, whose id comes behind a colon
	Asked   = "redlatch_ask"    // not Redisson's: the channel of questions to all clients
	Answers = "redlatch_answer" // not Redisson's: the channel of their answers
)

// ClientKey names the key that says who a client is.
func ClientKey(id string) string { return Client + ":" + id }

// Prefix names a side key or channel of an object: "p:{name}", or "p:name" if
// the name contains a brace, which is then taken for a hash tag.
func Prefix(p, name string) string {
	if strings.Contains(name, "{") {
		return p + ":" + name
	}
	return p + ":{" + name + "}"
}

// Tag returns the name that name shares its side keys and channels with, in
// braces: that of "x" and "{x}" is "x". It returns "" if no other name has the
// same.
func Tag(name string) string {
	tag, open := strings.CutPrefix(name, "{")
	tag, closed := strings.CutSuffix(tag, "}")
	if open != closed || strings.ContainsAny(tag, "{}") {
		return ""
	}
	return tag
}

// CheckName refuses names that Redis could not keep together. Redisson tests
// only whether a name contains "{", so a name with an unbalanced or empty pair
// would put an object's keys into different slots of a cluster, and the same
// name could work today and fail after the move to a cluster.
func CheckName(name string) error {
	if name == "" {
		return errors.New("a name must not be empty")
	}
	open := strings.IndexByte(name, '{')
	if open < 0 {
		if strings.IndexByte(name, '}') >= 0 {
			return fmt.Errorf("name %s has a '}' without a '{': in a cluster its keys would fall into different slots; use both or neither", Quote(name))
		}
		return nil
	}
	end := strings.IndexByte(name, '}')
	switch {
	case end < 0:
		return fmt.Errorf("name %s has a '{' without a '}': in a cluster its keys would fall into different slots; use both or neither", Quote(name))
	case end < open:
		return fmt.Errorf("name %s has a '}' before its '{': in a cluster its keys would fall into different slots", Quote(name))
	case end == open+1:
		return fmt.Errorf("name %s has an empty hash tag {}: in a cluster its keys would fall into different slots", Quote(name))
	case strings.Count(name, "{") != strings.Count(name, "}"):
		return fmt.Errorf("name %s has unbalanced braces", Quote(name))
	}
	return nil
}

// maxPrefix is how many bytes a prefix of names may have: patterns in questions to
// other clients need room.
const maxPrefix = 100

// CheckPrefix refuses what names cannot begin with, and what is too long.
func CheckPrefix(p string) error {
	if CheckName(p+"x") != nil {
		return fmt.Errorf("is no beginning of names: %w", CheckName(p))
	}
	if len(p) > maxPrefix {
		return fmt.Errorf("has %d bytes; it must have at most %d", len(p), maxPrefix)
	}
	return nil
}

// Literally returns the glob pattern that matches a text, and nothing else.
func Literally(text string) string { return globs.Replace(text) }

var globs = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`)

// Slot returns the hash slot of a key in a Redis Cluster.
func Slot(key string) int {
	if open := strings.IndexByte(key, '{'); open >= 0 {
		if n := strings.IndexByte(key[open+1:], '}'); n > 0 {
			key = key[open+1 : open+1+n]
		}
	}
	var crc uint16
	for i := range len(key) {
		crc = crc<<8 ^ crcs[byte(crc>>8)^key[i]]
	}
	return int(crc % 16384)
}

// crcs are the CRC-16 of XMODEM of each byte.
var crcs = func() (table [256]uint16) {
	for i := range table {
		crc := uint16(i) << 8
		for range 8 {
			high := crc >> 15
			crc = crc<<1 ^ high*0x1021
		}
		table[i] = crc
	}
	return table
}()
