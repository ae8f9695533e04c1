// Package opengoredis opens what package connect has read of a URL or a file, with go-redis. A program that imports it links
// no other client library: openrueidis and openvalkeygo are its sisters.
//
// go-redis asks no function for the credentials of sentinels, and has no setting for how often a topology is read again:
// Settings with SentinelCredentials are refused, and Settings.Refresh has no effect.
package opengoredis
