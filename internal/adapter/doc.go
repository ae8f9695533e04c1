// Package adapter is what the adapters to client libraries have in common: the
// lanes of a cluster, the word that a connection was lost, and the subscribers of
// a channel inside this process. It knows none of the libraries.
package adapter
