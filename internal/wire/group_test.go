package wire

import (
	"encoding/json"
	"os"
	"testing"
)

// What HighwayHash's authors publish for the bytes 0, 1, 2, ... of some lengths:
// of each way that its last packet is made.
func TestHighwayHash(t *testing.T) {
	var text [65]byte
	for i := range text {
		text[i] = byte(i)
	}
	key := [4]uint64{0x0706050403020100, 0x0f0e0d0c0b0a0908, 0x1716151413121110, 0x1f1e1d1c1b1a1918}
	for n, want := range map[int][2]uint64{
		0:  {0x0fed268f9d8ffec7, 0x33565e767f093e6f},
		1:  {0xd6b0a8893681e7a8, 0xdc291df9eb9cdcb4},
		2:  {0x3d15ad265a16da04, 0x78085638dc32e868},
		3:  {0x0607621b295f0beb, 0xbfe69a0fd9cedd79},
		4:  {0x26399eb46dace49e, 0x2e922ad039319208},
		15: {0x142237a52bc4af54, 0xe0796c0b6e26bcd7},
		16: {0x414460ffd5a401ad, 0x029ea3d5019f18c8},
		17: {0xc52a4b96c51c9962, 0xecb878b1169b5ea0},
		31: {0x06e7b465e8a57c29, 0x52415e3a07f5d446},
		32: {0x1984df66c1434aaa, 0x16fc1958f9b3e4b9},
		33: {0x111678afe0c6c36c, 0xf958b59de5a2849d},
		63: {0x74bd7018022f3ef0, 0x3aea94a8ad5f4bcb},
		64: {0x98bb1f7198d4c4f2, 0xe0bc0571de918fc8},
	} {
		if got := highway128(key, text[:n]); got != want {
			t.Errorf("%d bytes: %016x, want %016x", n, got, want)
		}
	}
}

// The fields of a group as Redisson's client names them.
func TestGroupFieldsAreRedissons(t *testing.T) {
	text, err := os.ReadFile("testdata/grouphashes-4.7.0.json")
	if err != nil {
		t.Fatal(err)
	}
	var recorded struct {
		Fields map[string]string `json:"fields"`
	}
	if err := json.Unmarshal(text, &recorded); err != nil || len(recorded.Fields) < 50 {
		t.Fatalf("%d values, %v", len(recorded.Fields), err)
	}
	for value, want := range recorded.Fields {
		if got := GroupField(value); got != want {
			t.Errorf("%q: %s, want %s", value, got, want)
		}
	}
}
