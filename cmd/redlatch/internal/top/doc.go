// Package top is a live view of locks on a terminal: a list, and one lock by
// itself.
//
//	top.go    what it needs, and its beginning and end
//	model.go  what keys and answers do
//	view.go   what is on the screen
//
// It lists from one goroutine at a time: a server that is slow delays the next
// list, and the keys never.
package top
