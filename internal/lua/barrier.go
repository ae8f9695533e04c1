package lua

// Scripts of the barrier.
var (
	BarrierArrive = load("barrier.arrive")
	BarrierInfo   = load("barrier.info")
	BarrierLeave  = load("barrier.leave")
	BarrierPoll   = load("barrier.poll")
	BarrierReset  = load("barrier.reset")
)
