package wire

import (
	"crypto/rand"
	"encoding/hex"
	"strconv"
	"strings"
)

// NewClientID returns a random UUID of version 8. Redisson's client ids are of
// version 4, so the two can be told apart, in Go and in a script.
func NewClientID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails since Go 1.24
	b[6] = b[6]&0x0f | 0x80
	b[8] = b[8]&0x3f | 0x80
	var s [36]byte
	hex.Encode(s[0:8], b[0:4])
	hex.Encode(s[9:13], b[4:6])
	hex.Encode(s[14:18], b[6:8])
	hex.Encode(s[19:23], b[8:10])
	hex.Encode(s[24:36], b[10:16])
	s[8], s[13], s[18], s[23] = '-', '-', '-', '-'
	return string(s[:])
}

// Owner returns the owner field of a client's n-th term: "<client id>:<n>",
// the shape of Redisson's "<client id>:<thread id>".
func Owner(client string, n uint64) string {
	b := make([]byte, 0, 64)
	b = append(b, client...)
	b = append(b, ':')
	return string(strconv.AppendUint(b, n, 10))
}

// KeptField returns the field of a lock that an owner has released and that stays
// for a while: nobody has it.
func KeptField(owner string) string { return owner + ":kept" }

// Kept says whether a field is such a lock's.
func Kept(field string) bool { return strings.HasSuffix(field, ":kept") }

// ClientOf returns the client id in an owner field, and whether that client is
// of redlatch. A field of another shape has no client.
func ClientOf(owner string) (id string, redlatch bool) {
	const shape = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx:"
	if len(owner) <= len(shape) {
		return "", false
	}
	for i := range len(shape) {
		if shape[i] == 'x' {
			if strings.IndexByte("0123456789abcdefABCDEF", owner[i]) < 0 {
				return "", false
			}
		} else if owner[i] != shape[i] {
			return "", false
		}
	}
	id = owner[:len(shape)-1]
	return id, id[14] == '8'
}
