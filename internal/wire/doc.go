// Package wire knows how Redisson names things in Redis: keys, channels and
// owner fields. It does no I/O.
//
// The rules are those of Redisson 3.10 to 4.7; they have not changed between.
package wire
