package doctor

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// The oldest versions that redlatch is tested with.
const (
	oldestRedis  = "6.2"
	oldestValkey = "7.2"
)

// server tells which server it is, and whether it can be written to.
func server(v *visit) []Finding {
	const check = "server"
	if v.info == nil {
		return nil
	}
	name, version, oldest := "Redis", v.info["redis_version"], oldestRedis
	if valkey := v.info["valkey_version"]; valkey != "" {
		name, version, oldest = "Valkey", valkey, oldestValkey
	}
	what := name + " " + version + ", " + cmp.Or(v.info["redis_mode"], v.info["server_mode"], "mode unknown")
	var all []Finding
	switch {
	case version == "":
		all = found(check, Note, "INFO does not tell which server this is",
			"redlatch is tested with Redis and Valkey, and not with other servers",
			"see whether the checks of scripts, commands and Pub/Sub below are fine")
	case older(version, oldest):
		all = found(check, Problem, fmt.Sprintf("%s; the oldest that is supported is %s %s", what, name, oldest),
			"scripts may fail, or answer something else", "use a newer server")
	default:
		all = fine(check, what)
	}
	switch role := v.info["role"]; {
	case role == "slave" || role == "replica":
		all = append(all, found(check, Problem, "this is a replica",
			"a replica refuses to write (READONLY), so nothing can be locked; a replica that accepts writes forgets them again",
			"use the address of the primary, or one of the sentinels or the cluster")...)
	case v.info["loading"] == "1":
		all = append(all, found(check, Warning, "the server is loading its data", "until then nothing can be locked", "wait")...)
	}
	_, why := v.ask("EVAL", "return 1", "2", v.opt.Prefix+own+"{1}", v.opt.Prefix+own+"{2}")
	slotsCount := why != nil && why.Code == "CROSSSLOT"
	switch {
	case !v.Single():
	case v.elsewhere():
		all = append(all, found(check, Problem, "this is a node of a cluster, and the URL names it as a single server",
			"locks whose slot is on another node fail with MOVED", "give the URL of a cluster")...)
	case slotsCount:
		all = append(all, fine(check, "keys of several hash slots are refused in one request (CROSSSLOT), so requests about them are sent apart")...)
	}
	if state, _ := v.clusterState(); state != "" && state != "ok" {
		all = append(all, found(check, Problem, "the cluster's state is "+state,
			"locks fail with CLUSTERDOWN, some or all of them", "see CLUSTER INFO and CLUSTER NODES: slots without a primary that is up")...)
	}
	return all
}

// clusterState returns what CLUSTER INFO says; "" outside a cluster.
func (v *visit) clusterState() (string, *ReplyError) {
	if !v.cluster() {
		return "", nil
	}
	text, why := v.ask("CLUSTER", "INFO")
	for line := range strings.Lines(str(text)) {
		if state, ok := strings.CutPrefix(strings.TrimSpace(line), "cluster_state:"); ok {
			return state, why
		}
	}
	return "", why
}

// older compares versions by their numbers.
func older(version, than string) bool {
	v, t := strings.Split(version, "."), strings.Split(than, ".")
	for i := range t {
		var have int
		if i < len(v) {
			have, _ = strconv.Atoi(v[i])
		}
		if want, _ := strconv.Atoi(t[i]); have != want {
			return have < want
		}
	}
	return false
}

// Limits of connections that are below what is usual.
const (
	smallTimeout = 30      // s
	smallBuffer  = 1 << 20 // bytes
)

// connections looks at limits that end connections.
func connections(v *visit) []Finding {
	const check = "connections"
	var all []Finding
	clients, limit := v.number("connected_clients"), cmp.Or(v.setting("maxclients"), v.number("maxclients"))
	if limit > 0 && clients*10 >= limit*9 {
		all = append(all, found(check, Warning, fmt.Sprintf("%d of %d connections are taken", clients, limit),
			"processes that start or reconnect are refused, and lose their locks if that lasts", "raise maxclients, or use smaller pools")...)
	}
	if t := v.setting("timeout"); t > 0 && t < smallTimeout {
		all = append(all, found(check, Note, fmt.Sprintf("connections that are idle for %d s are closed (timeout); those of Pub/Sub stay", t),
			"clients connect again and again, which delays a lock each time and looks like an outage", "CONFIG SET timeout 0")...)
	}
	if alive, told := v.config["tcp-keepalive"]; told && alive == "0" {
		all = append(all, found(check, Note, "tcp-keepalive is 0",
			"a client that has vanished counts as a listener for hours, so locks are released to a client that is not there", "CONFIG SET tcp-keepalive 60")...)
	}
	if hard := pubsubBuffer(v.config["client-output-buffer-limit"]); hard > 0 && hard < smallBuffer {
		all = append(all, found(check, Note, fmt.Sprintf("connections of Pub/Sub are closed when %d bytes wait for them (client-output-buffer-limit)", hard),
			"a client that is slow for a moment loses its subscriptions and the messages until it is back; waiters poll meanwhile",
			"CONFIG SET client-output-buffer-limit \"pubsub 32mb 8mb 60\"")...)
	}
	switch {
	case len(all) > 0:
		return all
	case limit > 0:
		return fine(check, fmt.Sprintf("%d of at most %d", clients, limit))
	}
	return nil
}

// setting returns a number in the configuration.
func (v *visit) setting(name string) int64 {
	n, _ := strconv.ParseInt(v.config[name], 10, 64)
	return n
}

// pubsubBuffer returns the hard limit of the class pubsub.
func pubsubBuffer(limits string) int64 {
	words := strings.Fields(limits)
	for i, word := range words {
		if word == "pubsub" && i+1 < len(words) {
			n, _ := strconv.ParseInt(words[i+1], 10, 64)
			return n
		}
	}
	return 0
}
