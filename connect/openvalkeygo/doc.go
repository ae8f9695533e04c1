// Package openvalkeygo opens what package connect has read of a URL or a file, with valkey-go. A program that imports it
// links no other client library: opengoredis and openrueidis are its sisters.
package openvalkeygo
