// Package redisson has what only matters to programs that share locks with
// services that use Redisson: its locks of many values ([GroupLock]), its locks
// that are tried again and again ([SpinLock]), and the names of the locks that its
// maps, sets and multimaps have for their entries ([Entry]).
//
// What must agree with those services stands in the Config of package redlatch:
// WatchdogTimeout, and the fields of Config.Redisson. Package redissonyaml reads
// Redisson's file.
//
//	both := redisson.GroupLock(client, "accounts", []string{"DE02", "FR14"})
//	entry := client.Lock(redisson.Entry{Object: "accounts", Key: "42"}.Lock())
package redisson
