package lua

// Scripts of the read-write lock. Those of an owner, without "Read" or "Write",
// serve both sides: what an owner holds is released and renewed together, whatever
// it is.
var (
	ReadWriteDowngrade     = load("readwrite.downgrade")
	ReadWriteReadAsk       = load("readwrite.read.ask")
	ReadWriteReadForce     = load("readwrite.read.force")
	ReadWriteReadReenter   = load("readwrite.read.reenter")
	ReadWriteReadTake      = load("readwrite.read.take")
	ReadWriteRelease       = load("readwrite.release")
	ReadWriteRenew         = load("readwrite.renew")
	ReadWriteWriteForce    = load("readwrite.write.force")
	ReadWriteWriteTake     = load("readwrite.write.take")
	ReadWriteWriteTransfer = load("readwrite.write.transfer")
	ReadWriteWriteYield    = load("readwrite.write.yield")
	ReadWriteWriteIntent   = load("readwrite.write.intent")
)
