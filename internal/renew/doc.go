// Package renew keeps leases alive and says when one can no longer be trusted.
// It does not know what is leased, nor how: the owner of a Lease gives it a
// Kind, which renews a batch, and a Holder, which is told.
//
// # Trust
//
// A lease that the server confirmed is trusted until
//
//	sent + lease - margin        margin = 10 ms + lease/50
//
// where sent is read before the confirmed request enters the driver, so that a
// slow reply cannot stretch trust. Trust only ever grows, and when it has
// ended it never comes back. Elapsed time is the larger of what the monotonic
// and what the wall clock say: the monotonic clock of a suspended machine
// stands still, and a stepped wall clock errs on the safe side.
//
//	        Add                 confirmed
//	new ─────────────► trusted ◄──────────┐
//	                     │ │  └─ renewal ─┘
//	                     │ └── gone ──────────► Holder.Gone
//	                     └──── window over ───► Holder.Expired
//
// # Renewing
//
// One clock goroutine owns the schedule and never does I/O. A lease that is to
// be renewed is due a third of its length after the confirmation that its window
// rests on, or soon if it was added with a shorter one. Due leases go to their
// lane, which is a server node: each lane has one sender, which takes up to 100
// leases of one kind at a time and exits when it has nothing to do, so a node
// that does not answer delays nobody else's.
//
// Each lease of a batch has its own result: confirmed, gone, or failed. A
// failed renewal is tried again after 50 ms to 1 s, with jitter, until the
// window is over. Kick makes all leases of a lane due at once: a new server
// must be asked before it is believed.
package renew
