// Package openrueidis opens connections with rueidis, to what package connect has read from a URL or a file. A program that
// imports it links no other client library. For the other libraries there are opengoredis and openvalkeygo.
package openrueidis
