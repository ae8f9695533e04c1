// Package notify turns a subscription into hints for one waiting goroutine: a
// message or a fresh subscription means "look again". Hints coalesce and may
// be lost or spurious; whoever waits also has a timer.
//
// A process hears its own messages too. A Listener counts those that were
// announced with Expect, so that a message from elsewhere can be told from its
// own by number: foreign messages are counted, and reported.
package notify
