// Package adapter is what the adapters to client libraries have in common: which node
// of a cluster serves a key, who is told that a connection was lost, and the subscribers
// of a channel inside this process. It knows none of the libraries.
//
// A lane is what the driver package calls so: the name of the node that serves a key.
package adapter
