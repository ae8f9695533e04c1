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
// The deadlines call Expired, and do nothing else. Renewals do not use their
// mutex: a confirmation moves the window, and the deadline finds that when it
// comes. So holders are told in time, however many leases end at one moment.
//
// # Renewing
//
// The clock never does I/O. What can be asked about together is a bunch: leases of
// one kind, group (a hash slot) and node. Without slots, and until a server that
// is taken for a single one refuses keys of several, all groups are one. A lease
// that is to be renewed is due a third of its length after the confirmation that
// its window rests on, or soon if it was added with a shorter one. Each bunch has
// a timer for the first lease that is due. The clock then looks through the bunch,
// and takes along the leases that are in the second half of their rest, so that
// after a while it renews all of them together. It looks through a bunch every 50
// ms at most, breaks and silences aside. Leases that wait for a pause of their
// own, after a failure or because they are short, are a bunch by themselves. For
// these, and for the end of a lease, the clock does not look through the leases
// that rest.
//
//	Lease ─ due ─► node
//	               ├─ bunch: one kind and group ─┐
//	               ├─ bunch                      ├─► up to 64 senders, each with
//	               └─ bunch                      ┘   a batch of up to 100 of a bunch
//
// The senders of a node come when there is something to do, up to 64, and end when
// there is nothing. So no batch waits for the answer to another, and a node that
// does not answer delays no other node's leases. What is due at that node waits
// here, and not for a connection.
//
// Each lease of a batch has its own result: confirmed, gone, or failed. A failed
// renewal is tried again after 50 ms to 1 s, with jitter, until the window is
// over; the lease keeps why it failed, for whoever tells of its loss. Kick makes
// all other leases of a node due at once: a new server must be asked before it is
// believed.
package renew
