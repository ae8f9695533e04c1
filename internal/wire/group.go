package wire

import (
	"encoding/base64"
	"encoding/binary"
)

// The fields that a group of locks has for a locked value, besides the value's
// own, which names the owner.
const (
	GroupExpiry = ":expire_time"
	GroupCount  = ":lock_count"
)

// groupKey is what Redisson hashes with.
var groupKey = [4]uint64{0x9e3779b97f4a7c15, 0xf39cc0605cedc834, 0x1082276bf3a27251, 0xf86c6a11d0c18e95}

// GroupField returns the field of a value of a group: a hash of the value's text
// in UTF-8. That is what Redisson makes of a string with its StringCodec; with
// other codecs it makes other fields of it.
func GroupField(value string) string { return hashed(value) }

// Entry returns the name of what Redisson keeps about one entry of an object.
func Entry(object, key, what string) string { return Suffix(object, hashed(key)+":"+what) }

// hashed returns Redisson's hash of a text in UTF-8.
func hashed(value string) string {
	h := highway128(groupKey, []byte(value))
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], h[0])
	binary.BigEndian.PutUint64(b[8:], h[1])
	return base64.RawStdEncoding.EncodeToString(b[:])
}

// GroupFields returns the fields that say until when an owner has a value of a
// group, in ms of the wall clock, and how often it has entered.
func GroupFields(value, owner string) (expiry, count string) {
	return value + ":" + owner + GroupExpiry, value + ":" + owner + GroupCount
}
