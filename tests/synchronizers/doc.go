// Package synchronizers tests what is no lock. The first word of a file's name is
// its subject:
//
//   - semaphore: semaphores, those whose permits are counted and those whose
//     permits have ids and leases;
//   - latch: count-down latches and barriers, and the sessions that keep their
//     counts exact;
//   - ratelimiter: rate limiters, and the queue that callers of one process form
//     before one;
//   - election: candidates: which one leads, when the next one does, and what
//     others see of it.
package synchronizers
