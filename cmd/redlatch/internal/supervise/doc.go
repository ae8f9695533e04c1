// Package supervise runs one command in a process group of its own, so that
// all of it can be signalled and, when it must not go on, ended.
//
//   - Signals that arrive here are forwarded to the group. A second TERM is a
//     KILL.
//   - When Command.Stop is closed the group gets TERM, and KILL after
//     Command.KillAfter.
//   - Run returns when the whole group has ended, not only the command itself.
//   - When this process dies, however suddenly, the group is killed: by a
//     guard, a second process at the other end of a pipe (guard_unix.go), and
//     on Linux the command itself also by the kernel.
//   - A command that reads from the terminal gets it, and job control works
//     through this process (terminal_unix.go).
//
// On Windows there are no process groups to signal: only the command itself is
// killed, at once, and what it has started goes on.
package supervise
