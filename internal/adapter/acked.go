package adapter

import "strings"

// Unacknowledged returns what an error reply to WAIT says of how many replicas have
// acknowledged a script: none, or a negative number if the server cannot say.
func Unacknowledged(text string) int {
	if strings.HasPrefix(text, "NOPERM") || strings.HasPrefix(strings.ToLower(text), "err unknown command") {
		return -1
	}
	return 0 // UNBLOCKED, for one
}
