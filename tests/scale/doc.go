// Package scale has one client hold very many locks of a cluster, and very many
// callers wait for some. Its tests say what that costs, in a process of their own,
// and look for whatever is lost or left behind.
package scale
