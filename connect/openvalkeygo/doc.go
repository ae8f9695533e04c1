// Package openvalkeygo opens connections with valkey-go, to what package connect has read from a URL or a file. A
// program that imports it links no other client library. For the other libraries there are opengoredis and openrueidis.
package openvalkeygo
