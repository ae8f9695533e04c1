package faultnet

import (
	"bytes"
	"strings"
	"testing"
)

// FuzzFrames: whatever a server sends, the parser ends, and the frames that it
// takes are exactly the bytes that came.
func FuzzFrames(f *testing.F) {
	for _, s := range []string{
		"+OK\r\n", "*2\r\n$1\r\na\r\n:1\r\n", "%1\r\n+a\r\n*-1\r\n", "|1\r\n+a\r\n:1\r\n+x\r\n",
		">3\r\n$7\r\nmessage\r\n+a\r\n+b\r\n", "$-1\r\n", "*9999999\r\n", strings.Repeat("*1\r\n", 100),
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		s := newScanner(bytes.NewReader(in))
		for rest := in; ; {
			got, err := s.frame()
			if err != nil {
				return
			}
			if !bytes.HasPrefix(rest, got.raw) || len(got.raw) == 0 {
				t.Fatalf("frame %q is not at the start of %q", got.raw, rest)
			}
			rest = rest[len(got.raw):]
		}
	})
}

// FuzzRequests is the same for what a client sends.
func FuzzRequests(f *testing.F) {
	for _, s := range []string{"*1\r\n$4\r\nPING\r\n", "PING x\r\n", "\r\n*0\r\n*-1\r\n", "*3\r\n$1\r\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		s := newScanner(bytes.NewReader(in))
		for rest := in; ; {
			_, raw, err := s.request()
			if err != nil {
				return
			}
			if !bytes.HasPrefix(rest, raw) || len(raw) == 0 {
				t.Fatalf("request %q is not at the start of %q", raw, rest)
			}
			rest = rest[len(raw):]
		}
	})
}

func TestNestingIsBounded(t *testing.T) {
	_, err := newScanner(strings.NewReader(strings.Repeat("*1\r\n", 10_000))).frame()
	if err == nil || !strings.Contains(err.Error(), "nested") {
		t.Fatalf("error %v", err)
	}
}
