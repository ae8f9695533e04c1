package adapter

import "strings"

// Unacknowledged returns what an error reply to WAIT says of how many replicas have
// acknowledged a script: none, or a negative number if the server cannot say.
func Unacknowledged(text string) int {
	// A client library may have cut off an ERR.
	if strings.HasPrefix(text, "NOPERM") || strings.Contains(text, "unknown command") {
		return -1
	}
	return 0 // UNBLOCKED, for one
}
