package faultnet

import (
	"crypto/sha1"
	"encoding/hex"
	"strings"
	"sync/atomic"
	"time"
)

// Request is one complete request of a client, as a rule sees it.
type Request struct {
	Conn int      // number of the client connection, from 1 in the order of their opening
	N    int64    // sequence number over all connections, from 1
	Args []string // Args[0] is the command in upper case; never empty; not to be modified
}

// Script returns the SHA-1, in lower-case hex, of the script that an EVALSHA or
// EVAL (or their _RO forms) runs, and "" for every other command.
func (r Request) Script() string {
	if len(r.Args) < 2 {
		return ""
	}
	switch r.Args[0] {
	case "EVALSHA", "EVALSHA_RO":
		return strings.ToLower(r.Args[1])
	case "EVAL", "EVAL_RO":
		sum := sha1.Sum([]byte(r.Args[1]))
		return hex.EncodeToString(sum[:])
	}
	return ""
}

type verb int

const (
	pass verb = iota
	dropReply
	stallReply
	hold
	delay
	duplicate
)

// Action says what becomes of one request. The zero Action is [Pass].
type Action struct {
	verb verb
	wait time.Duration
	held *Held
}

// The actions without a parameter. They are values to return from a rule and
// must not be assigned to.
var (
	// Pass forwards the request and delivers its reply.
	Pass = Action{}

	// DropReply forwards the request; when the server has answered, the client
	// connection is closed instead of delivering that reply. Replies to earlier
	// requests are delivered first.
	DropReply = Action{verb: dropReply}

	// StallReply forwards the request, and delivers neither its reply nor
	// anything later on that connection, which stays open: the client must run
	// into its own time limit. Later requests still reach the server.
	StallReply = Action{verb: stallReply}

	// Duplicate forwards the request twice in a row and delivers the first
	// reply only.
	Duplicate = Action{verb: duplicate}
)

// Delay forwards the request d after it arrived. Later requests of that
// connection wait behind it. It is forwarded even if the client has closed the
// connection by then: that is how a late request is made.
func Delay(d time.Duration) Action { return Action{verb: delay, wait: d} }

// Hold keeps the request in h instead of forwarding it, and closes the client
// connection once the replies to earlier requests are delivered: the client
// sees an unknown outcome. What the client sent behind it is lost. A Held keeps
// one request: when h has one already, the action is Pass.
func Hold(h *Held) Action { return Action{verb: hold, held: h} }

// First returns a rule that gives a to the first request that match accepts,
// and Pass to all others. It is safe for concurrent use if match is.
func First(match func(Request) bool, a Action) func(Request) Action {
	var used atomic.Bool
	return func(r Request) Action {
		if match(r) && used.CompareAndSwap(false, true) {
			return a
		}
		return Pass
	}
}
