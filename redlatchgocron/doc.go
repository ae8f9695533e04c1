// Package redlatchgocron makes jobs of [github.com/go-co-op/gocron/v2] run once in
// all processes that have the same schedule:
//
//	locker := redlatchgocron.NewLocker(client, redlatchgocron.Options{Prefix: "jobs:", MinHold: time.Minute})
//	scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
//
// There are two ways, and a scheduler takes one of them:
//
//   - [NewLocker]: the process that is first at a job's time runs the job, so jobs
//     spread over the processes. A job that is shorter than the difference between
//     the clocks of the processes would run once more. Options.MinHold prevents
//     that.
//   - [NewElector]: one process, the leader, runs all jobs. When it ends, another
//     one goes on.
//
// gocron does not tell a running job that its lock, or the leadership, was lost,
// so a job goes on beside the next one. [Locker.Task] and [Elector.Task] make
// tasks that are told: their context ends. What must not happen twice all the
// same, because a process was paused, needs a fencing token (see package fence):
// the number of the leader's term is one.
//
// # Versions
//
// This package is a module of its own. It is released together with redlatch, and
// has the same version numbers. Require the same version of both.
package redlatchgocron
