// Package openrueidis opens what package connect has read of a URL or a file, with rueidis. A program that imports it links
// no other client library: opengoredis and openvalkeygo are its sisters.
package openrueidis
