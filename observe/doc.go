// Package observe tells a program what happens to a redlatch client: of each
// acquisition and hold, of losses, and of requests that fail.
//
//	remove := observe.Add(client, observe.Hooks{Lost: func(e observe.LostEvent) { ... }})
//
// Packages redlatchprom and redlatchotel make metrics and traces of it, and
// Config.Logger of package redlatch writes the same events to a log, but for those
// of acquisitions. While nobody observes a client, it pays nothing for that.
package observe
