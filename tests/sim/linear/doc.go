// Package linear says whether what several callers were told can have happened in
// one order: each call at a moment between its beginning and its end. Porcupine
// searches that order. What a call does to a thing, and what it may be told, is
// the thing's model.
//
// It knows nothing of the library, nor of the simulation. There is a model of each
// of these:
//
//   - holds: something of which one has all, or some have a weight each. An owner
//     may have it several times, which weighs once. A hold ends when its owner
//     gives it up, or is told that it is over. Tokens rise.
//   - semaphore: permits that are only counted. Some may be added, or taken away
//     while somebody has them.
//   - latch: a count that callers bring to 0.
//   - barrier: where as many meet as there are parties, unless it breaks, or
//     somebody resets it.
//   - limiter: permits of which there are some in each interval.
//
// A call that was told nothing may have been executed, at any time from its
// beginning on, or not. For a latch there are two states then, and the call never
// ends. For a semaphore, where such calls are many, the state has how many permits
// may be on their way: what is free is known up to these. At a barrier such a
// caller may fill a place from its call on, until it is certain that its process
// has left. At a limiter such a call can only leave less for others: the model
// does without it, and without those that were refused.
//
// The history of each thing is searched by itself. The search ends after a number
// of steps, which are the same in each replay, and not after some time. Then
// nobody knows whether the history is right, and the caller is told so.
package linear
