package lua

// Scripts of several locks at once.
var (
	MultiLockTake = load("multilock.take")
)
