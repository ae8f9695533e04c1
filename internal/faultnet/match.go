package faultnet

import "strings"

// expected is the reply, or the row of subscription confirmations, that one
// forwarded request is owed.
type expected struct {
	verb     verb
	suppress bool   // never delivered: the second reply of a duplicate
	cut      bool   // no reply: the connection ends here, behind earlier replies
	confirm  string // kind of confirmations due, such as "subscribe"; "" for a plain reply
	left     int    // confirmations still due; negative: until no subscription is left
}

// verdict says what becomes of one message of the server.
type verdict struct {
	deliver bool
	cut     bool // end the client connection behind it
	stall   bool // deliver nothing from this message on
}

// matcher assigns the messages of a server to the requests that they answer.
// It is not safe for concurrent use.
type matcher struct {
	pending []expected
	pubsub  bool // a (un)subscribe was forwarded
	resp3   bool // a message that only RESP3 has was seen

	// The channels that the client has subscribed to, by the letter in front of
	// the confirmation's kind: "", "p" or "s".
	channels map[string]map[string]bool
}

var confirmations = map[string]string{
	"SUBSCRIBE": "subscribe", "UNSUBSCRIBE": "unsubscribe",
	"PSUBSCRIBE": "psubscribe", "PUNSUBSCRIBE": "punsubscribe",
	"SSUBSCRIBE": "ssubscribe", "SUNSUBSCRIBE": "sunsubscribe",
}

func isConfirmation(head string) bool {
	switch head {
	case "subscribe", "unsubscribe", "psubscribe", "punsubscribe", "ssubscribe", "sunsubscribe":
		return true
	}
	return false
}

func isMessage(head string) bool {
	return head == "message" || head == "pmessage" || head == "smessage"
}

// idle reports whether no reply is due.
func (m *matcher) idle() bool {
	return len(m.pending) == 0 || m.pending[0].cut
}

func (m *matcher) expect(args []string, v verb, suppress bool) {
	e := expected{verb: v, suppress: suppress, confirm: confirmations[args[0]]}
	if e.confirm != "" {
		m.pubsub = true
		if e.left = len(args) - 1; e.left == 0 {
			e.left = -1
		}
	}
	m.pending = append(m.pending, e)
}

// expectCut notes the end of the connection behind all replies that are due,
// and reports whether that is now.
func (m *matcher) expectCut() (now bool) {
	now = m.idle()
	m.pending = append(m.pending, expected{cut: true})
	return now
}

// take assigns f. In RESP2, messages and confirmations are arrays like many
// replies; they are told apart by their first element, and only on connections
// that have used Pub/Sub.
func (m *matcher) take(f frame) verdict {
	if f.kind == '>' || f.kind == '%' {
		m.resp3 = true
	}
	if f.kind == '>' || f.kind == '*' && m.pubsub && !m.resp3 {
		switch {
		case isConfirmation(f.head):
			return m.confirmed(f)
		case f.kind == '>' || isMessage(f.head):
			return verdict{deliver: true}
		}
	}
	if m.idle() {
		return verdict{deliver: true} // unasked for, such as an error before the server hangs up
	}
	// A (un)subscribe that is answered plainly has failed, or was queued by MULTI.
	e := m.pending[0]
	m.pending = m.pending[1:]
	return m.judge(e)
}

// confirmed assigns one confirmation to the request at the head if that waits
// for one.
func (m *matcher) confirmed(f frame) verdict {
	rest := m.note(f)
	if len(m.pending) == 0 || m.pending[0].confirm != f.head {
		return verdict{deliver: true} // the server ended a subscription by itself
	}
	e := &m.pending[0]
	was := *e
	if e.left > 0 {
		e.left--
	} else {
		// An UNSUBSCRIBE without channels is confirmed once for each one, and
		// once if there is none.
		e.left = -rest
	}
	if e.left == 0 {
		m.pending = m.pending[1:]
	}
	return m.judge(was)
}

// note keeps account of a confirmation's channel, and returns how many channels
// of its family are left.
func (m *matcher) note(f frame) (rest int) {
	family, ending := strings.CutSuffix(f.head, "unsubscribe")
	if !ending {
		family = strings.TrimSuffix(f.head, "subscribe")
	}
	set := m.channels[family]
	if ending {
		delete(set, f.next)
		return len(set)
	}
	if set == nil {
		set = make(map[string]bool)
		if m.channels == nil {
			m.channels = make(map[string]map[string]bool)
		}
		m.channels[family] = set
	}
	set[f.next] = true
	return len(set)
}

// judge applies the request's action to (the first part of) its reply.
func (m *matcher) judge(e expected) verdict {
	switch {
	case e.verb == dropReply:
		return verdict{cut: true}
	case e.verb == stallReply:
		return verdict{stall: true}
	}
	cut := len(m.pending) > 0 && m.pending[0].cut
	return verdict{deliver: !e.suppress, cut: cut}
}
