package wire

import (
	"slices"
	"strings"
)

// PlainCodec says whether a codec of Redisson sends a text, a number or bytes as
// they are. Others wrap a value in bytes of their own, and what is a hash of these
// has another name. The codec is a class, or the last part of its name if it is
// Redisson's; none is StringCodec.
func PlainCodec(codec string) bool {
	return codec == "" || slices.Contains([]string{"StringCodec", "LongCodec", "ByteArrayCodec"}, strings.TrimPrefix(codec, "org.redisson.client.codec."))
}
