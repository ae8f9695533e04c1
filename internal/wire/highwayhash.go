package wire

import (
	"encoding/binary"
	"math/bits"
)

// highway128 is the 128-bit HighwayHash of text, as its authors have frozen it,
// in two words. It is written to be read: values of a group are short, and each
// is hashed once for a lock.
func highway128(key [4]uint64, text []byte) [2]uint64 {
	h := newHighway(key)
	for ; len(text) >= 32; text = text[32:] {
		h.update(words(text))
	}
	if len(text) > 0 {
		h.rest(text)
	}
	for range 6 {
		h.update(h.permuted())
	}
	return [2]uint64{
		h.v0[0] + h.mul0[0] + h.v1[2] + h.mul1[2],
		h.v0[1] + h.mul0[1] + h.v1[3] + h.mul1[3],
	}
}

// highway is the state: four lanes of each of four words.
type highway struct{ v0, v1, mul0, mul1 [4]uint64 }

// newHighway starts with the first digits of pi and the key.
func newHighway(key [4]uint64) *highway {
	h := &highway{
		mul0: [4]uint64{0xdbe6d5d5fe4cce2f, 0xa4093822299f31d0, 0x13198a2e03707344, 0x243f6a8885a308d3},
		mul1: [4]uint64{0x3bd39e10cb0ef593, 0xc0acf169b5f18a8c, 0xbe5466cf34e90c6c, 0x452821e638d01377},
	}
	for i, k := range key {
		h.v0[i] = h.mul0[i] ^ k
		h.v1[i] = h.mul1[i] ^ bits.RotateLeft64(k, 32)
	}
	return h
}

func words(packet []byte) (w [4]uint64) {
	for i := range w {
		w[i] = binary.LittleEndian.Uint64(packet[8*i:])
	}
	return w
}

func (h *highway) update(packet [4]uint64) {
	for i := range packet {
		h.v1[i] += packet[i] + h.mul0[i]
		h.mul0[i] ^= h.v1[i] & 0xffffffff * (h.v0[i] >> 32)
		h.v0[i] += h.mul1[i]
		h.mul1[i] ^= h.v0[i] & 0xffffffff * (h.v1[i] >> 32)
	}
	addZipped(&h.v0, h.v1)
	addZipped(&h.v1, h.v0)
}

// zipper says which byte of a pair of words, counted from the lowest of the
// first, goes where: multiplying has mixed the middle ones best.
var zipper = [16]uint{3, 12, 2, 5, 14, 1, 15, 0, 11, 4, 10, 13, 9, 6, 8, 7}

// addZipped adds to each pair of words the permuted bytes of another pair.
func addZipped(to *[4]uint64, from [4]uint64) {
	for pair := 0; pair < 4; pair += 2 {
		var sum [2]uint64
		for i, at := range zipper {
			octet := from[pair+int(at/8)] >> (at % 8 * 8) & 0xff
			sum[i/8] |= octet << (i % 8 * 8)
		}
		to[pair] += sum[0]
		to[pair+1] += sum[1]
	}
}

// rest takes the last 1 to 31 bytes, and how many they are.
func (h *highway) rest(text []byte) {
	n := len(text)
	for i := range h.v0 {
		h.v0[i] += uint64(n)<<32 + uint64(n)
		low, high := uint32(h.v1[i]), uint32(h.v1[i]>>32)
		h.v1[i] = uint64(bits.RotateLeft32(high, n))<<32 | uint64(bits.RotateLeft32(low, n))
	}
	var packet [32]byte
	tail := text[copy(packet[:], text[:n&^3]):]
	switch {
	case n >= 16:
		copy(packet[28:], text[n-4:])
	case len(tail) > 0:
		packet[16], packet[17], packet[18] = tail[0], tail[len(tail)/2], tail[len(tail)-1]
	}
	h.update(words(packet[:]))
}

// permuted is the packet of a round after the last.
func (h *highway) permuted() [4]uint64 {
	swapped := func(i int) uint64 { return bits.RotateLeft64(h.v0[i], 32) }
	return [4]uint64{swapped(2), swapped(3), swapped(0), swapped(1)}
}
