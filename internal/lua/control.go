package lua

// Scripts by which clients ask one another to let go.
var (
	ControlAnswer = load("control.answer")
	ControlAsk    = load("control.ask")
	ControlAsked  = load("control.asked")
)
