// Package campaign plays what package sim plays with real processes, on a real server, in real time. The same checker judges it.
//
// Three processes of three workers each want two objects. Each process has a way of its own to the server, through internal/faultnet, and
// an adapter of its own. They write when they trusted what they had, by the monotonic clock of the machine. Meanwhile a process is
// killed, or stands still past its lease; its way is cut, one way or both, or its connections break; the server is killed and comes back
// with its data, or stands still.
//
// A claim counts from when its worker first found it to be its own until it last did. What a process does before it looks again is not
// protected, and does not count.
//
// The types that nobody holds are not played: semaphore (which only counts), latch, barrier and limiter. Their checks need package sim.
//
// What cannot be shown here: a loss of data, Sentinel and Cluster, and processes of Redisson. Package topologies has stories of the first
// two, and package interop of the third. Keys that are left behind are for package sim.
package campaign
