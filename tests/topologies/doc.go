// Package topologies runs every type of redlatch, through each adapter, on every
// arrangement of servers: one server, a primary with a replica, a primary that
// sentinels watch, and a cluster, of Redis and of Valkey. Its tests start the
// servers themselves, on loopback.
package topologies
