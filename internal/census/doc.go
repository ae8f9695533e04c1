// Package census tells who the clients of a server are, what they hold and what
// they wait for.
//
// # What it does not promise
//
// An answer is a claim. Whoever may use locks at all may publish one, so nothing
// is ended, freed or believed because an answer says so: what it says to be held
// is compared with what is stored. A client that is silent may be busy, cut off,
// older than this package, or gone.
//
//	Ask ──► question, who listens? ──► answers ──► what do they hold? ──► Answers
//	          (all)      │            (jittered)     (read from Redis)
//	                     └── fewer answers: so many are silent
//
//	question ──► is it short, and one of few? ──► with those before it ──► one answer a second
//
// # What a client says of itself
//
// A client notes its [Identity] under a key of its own, a second or two after it
// has made its first owner id, and again every five minutes: the note is for
// whoever finds such an id in Redis. Nothing is written for a lock, nor by a
// client that only looks. The note outlives the client by 15 minutes at most.
//
// All clients listen to one channel. A client answers once a second at most,
// whoever asks and how often: questions that come meanwhile are answered together,
// by one message of at most 16 kB, which has the longest waits and the oldest
// holds. Between questions the answering side does nothing, and has no goroutine.
//
// # One holder
//
// A caller whose wait ends in vain hears what the holder says of itself. For that
// no question goes to all clients: the holder's client alone is asked, by its own
// channel, shortly before the wait ends. All callers of a client share the
// question and the answer, which is remembered until somebody asks about another
// hold of the lock.
//
// # What is not trusted
//
// The length of a message, which is looked at before it is parsed; its version,
// its fields, their numbers, and whose id an owner begins with. Times are told as
// how long ago something was, so that clocks may differ. Texts that identify a
// client have no character that cannot be printed.
//
// # What it does not know
//
// What a client holds: the source of claims says so. How a lock is stored:
// internal/inspect does.
package census
