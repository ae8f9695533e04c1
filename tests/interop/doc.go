// Package interop tells what redlatch and the real Redisson do to each other,
// as tests: one lock, a Go process and a Java process, a real server. Each
// story runs in both directions, with every driver and every Redisson version
// that package peer builds.
//
// It needs a JDK and Maven besides the servers of the other tests: see `make
// interop`. The golden files of internal/wire/testdata are recorded here:
//
//	go test -run TestGolden ./interop -record
package interop
