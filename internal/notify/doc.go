// Package notify turns a subscription into hints for one waiting goroutine: a
// message or a fresh subscription means "look again". Hints coalesce and may
// be lost or spurious; a goroutine that waits also has a timer.
//
// A process hears its own messages too. It announces each with Expect. A Listener
// counts what was announced and what it hears, and so knows how many messages
// came from elsewhere: it counts these foreign messages, and reports them.
package notify
