package lua

// Scripts of the count-down latch.
var (
	LatchCount  = load("latch.count")
	LatchDelete = load("latch.delete")
	LatchDown   = load("latch.down")
	LatchSet    = load("latch.set")
)
