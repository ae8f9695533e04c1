package driver

import (
	"crypto/sha1" //nolint:gosec // Redis names scripts by their SHA-1; it is no secret.
	"encoding/hex"
)

// A Script is a Lua program. It is immutable and safe for concurrent use.
type Script struct {
	name, source, sha string
}

// NewScript makes a script of its source text.
func NewScript(name, source string) *Script {
	sum := sha1.Sum([]byte(source)) //nolint:gosec // see the import
	return &Script{name, source, hex.EncodeToString(sum[:])}
}

// Name returns the script's name, such as "lock.take".
func (s *Script) Name() string { return s.name }

// Source returns the text that EVAL takes.
func (s *Script) Source() string { return s.source }

// SHA returns the hexadecimal SHA-1 that EVALSHA takes.
func (s *Script) SHA() string { return s.sha }
