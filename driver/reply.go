package driver

// A Reply is a script's answer. redlatch's scripts answer with an integer, a
// string, nil, or a flat list of these.
type Reply struct {
	Kind ReplyKind
	Int  int64   // if Kind is ReplyInt
	Str  string  // if Kind is ReplyString
	List []Reply // if Kind is ReplyList
}

// A ReplyKind says which field of a Reply holds the answer.
type ReplyKind uint8

// The kinds of reply.
const (
	ReplyNil    ReplyKind = iota // no value
	ReplyInt                     // Reply.Int
	ReplyString                  // Reply.Str
	ReplyList                    // Reply.List
)
