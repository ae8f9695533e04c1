// Package barrier lets callers wait for one another, in generations: those that go
// on together, or learn together that one of them is missing.
//
// # What it promises
//
// A caller is in one generation only, and is counted in it once, whatever happens
// to its request. One that gives up leaves its generation, which is broken then;
// the request that says so is sent until the server has answered or the client is
// closed, because the others must not wait for a caller that will not come.
//
//	arrive ──► tripped, it was the last ────────────────────────► go on
//	  ▲  │└──► waits ──► poll ──► tripped, or broken ───────────► go on, or fail
//	  │  │                └──► the caller gives up ──► leave ──► fail
//	  └──┴── another generation gathers than was thought
//
// # What it does not know
//
// How a generation is stored, and the time: the scripts go by the server's clock.
// How callers wait together: poll. Which errors users see: [BrokenError] has what
// they say.
package barrier
