// Package adapter is what the adapters to client libraries have in common: which
// node of a cluster serves a key, who is told that a connection was lost, and the
// subscribers of a channel inside this process. It knows none of the libraries.
//
// A node goes by its name here, which is what the drivers' method Node returns. As
// long as it is not known which node serves a slot, a range of slots stands for
// it.
package adapter
