// Package connect tells stories of package connect, with each of the client
// libraries that open what it has read.
package connect
