// Command bench measures redlatch beside other lock libraries and beside plain
// scripts on the same client, and writes docs/performance.md.
//
//	cd tests && go run ./bench                everything, 30 minutes at most
//	cd tests && go run ./bench -quick         short and coarse, ten minutes
//	cd tests && go run ./bench -base COMMIT   redlatch only, beside itself as it was: ten minutes
//
// Each measurement runs in processes of its own: the command starts itself
// again with a [job], and the implementations take turns (A, B, C, C, B, A), so
// that a machine whose speed drifts treats them alike. The server belongs to
// the run: it listens on a free loopback port and ends with it.
//
// scenario.go says what is measured, plan.go for how long, loop.go and fanout.go
// how, and the impl_ files hold one implementation each. targets.go has what
// redlatch is to reach. inshort.go has the words with which the page begins,
// standing.go the comparisons in words, plots.go the pictures. compare.go compares
// two commits; the loads of that are a program of their own.
//
// The costs_ files have what holds, waiters, readers and connections cost, in
// bytes and goroutines, and capacity.go a model of very many clients that
// production.md shows.
package main
