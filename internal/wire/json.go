package wire

import "unicode/utf8"

// SplitName returns a name as messages in JSON have it: as text, or in bytes if it
// is no UTF-8.
func SplitName(name string) (text string, raw []byte) {
	if utf8.ValidString(name) {
		return name, nil
	}
	return "", []byte(name)
}

// JoinName returns the name that SplitName has split.
func JoinName(text string, raw []byte) string {
	if raw != nil {
		return string(raw)
	}
	return text
}
