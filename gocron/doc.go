// Package redlatchgocron has jobs of [github.com/go-co-op/gocron/v2] run once in all processes that have the same
// schedule. There are two ways, of which a scheduler takes one:
//
//   - [NewLocker]: whoever comes first to a job's time runs it, so that jobs spread over the processes. A job
//     that is shorter than the differences between their clocks would run once more; Options.HoldAtLeast prevents that.
//   - [NewElector]: one process, the leader, runs all jobs. When it ends, another one goes on.
//
// Neither ends a job: gocron does not tell a job that its lock, or the leadership, was lost while it runs. What must not
// happen twice then is for a fencing token; see package fence, or use [redlatch.Lock.Do] or [redlatch.Election.Run] in the job,
// whose context ends.
//
// # Versions
//
// This package is a module of its own. It is released together with redlatch and has
// its version numbers: require the same version of both.
package redlatchgocron
