package adapter

import "strings"

// Unacknowledged returns what an error reply to WAIT says about the number of
// replicas that have acknowledged a script: 0, or a negative number if the server
// cannot say.
func Unacknowledged(text string) int {
	// A client library may have cut off an ERR.
	if strings.HasPrefix(text, "NOPERM") || strings.Contains(text, "unknown command") {
		return -1
	}
	return 0 // UNBLOCKED, for one
}
