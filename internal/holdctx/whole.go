package holdctx

// A Whole is what consists of several that are held, each with an id, and perhaps
// a token, of its own.
type Whole struct{}

// ID returns none.
func (Whole) ID() string { return "" }

// Token returns none.
func (Whole) Token() int64 { return 0 }
