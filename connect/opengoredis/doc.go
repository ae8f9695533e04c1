// Package opengoredis opens connections with go-redis, to what package connect has read from a URL or a file. A program that
// imports it links no other client library. For the other libraries there are openrueidis and openvalkeygo.
//
// go-redis calls no function for the credentials of sentinels, so Settings with SentinelCredentials are refused. It has
// no setting for how often a topology is read again, so Settings.Refresh has no effect.
package opengoredis
