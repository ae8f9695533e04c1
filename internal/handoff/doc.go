// Package handoff is the conduct of a process towards others that want what it
// has.
//
// What a goroutine releases goes to the next one of the same process without a
// round trip. A [Budget] says for how long that may go on, and for how long the
// process then leaves the lock to the others. It promises that no process keeps a
// lock from others that wait for it, and that others which only listen cost it a
// tenth of its time at most.
//
//	quantum ── over, others wait ──► yield ──► pause ── a message: somebody had it ──► pause, one less owed
//	   ▲                                        │                                          │
//	   │                                        │ nobody had it                            │ nothing is owed
//	   └──────────── quiet ◄────────────────────┘                                          │
//	   ▲                                                                                   │
//	   └───────────────────────────────────────────────────────────────────────────────────┘
//
// A quantum ends after 32 hand-offs and a millisecond, or after five milliseconds.
// To yield is to release to n others: then the process owes n of them a turn, and
// makes a pause for each. During the quiet, which lasts nine pauses, it owes only
// as many as have taken a turn before. What one release has found is remembered
// for as long.
//
// A Budget does not know what is held, who waits, or how to ask. It is not locked:
// it belongs to whoever may hand off. It believes the messages that it is told of;
// a listener that wants nothing looks like a waiter until a pause has shown that
// nobody used it. From processes more than 60 ms of round trip away it takes the
// same silence for no interest.
package handoff
