// Package grouplock tells of locks that share a name in groups.
package grouplock
