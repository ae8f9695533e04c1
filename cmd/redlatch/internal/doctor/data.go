package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redlatch/redlatch/internal/acl"
)

// eviction looks at what the server does when its memory is full.
func eviction(v *visit) []Finding {
	const check = "eviction"
	policy, limit, used := v.info["maxmemory_policy"], v.number("maxmemory"), v.number("used_memory")
	if policy == "" {
		return nil
	}
	const remedy = "CONFIG SET maxmemory-policy noeviction, and in redis.conf; keep caches in another server"
	var all []Finding
	switch {
	case policy == "noeviction" && limit == 0:
		all = fine(check, "maxmemory-policy is noeviction, and maxmemory is not set")
	case policy == "noeviction":
		all = fine(check, fmt.Sprintf("maxmemory-policy is noeviction; %s of %s are used", size(used), size(limit)))
	case limit == 0:
		all = found(check, Note, "maxmemory-policy is "+policy+"; maxmemory is not set, so it does nothing yet",
			"as soon as somebody sets maxmemory, locks can be evicted: two holders may then have one lock", remedy)
	default:
		victims := "any key, locks too"
		if strings.HasPrefix(policy, "volatile-") {
			victims = "the keys that have a TTL, and those are the locks"
		}
		what := fmt.Sprintf("maxmemory-policy is %s; %s of %s are used", policy, size(used), size(limit))
		if n := v.number("evicted_keys"); n > 0 {
			what += fmt.Sprintf(", and %d keys have been evicted since the start", n)
		}
		all = found(check, Problem, what,
			"when memory is full the server deletes "+victims+": somebody else gets the lock, and its holder learns of it with the next renewal", remedy)
	}
	const more = "raise maxmemory, or find out what fills it (redis-cli --bigkeys)"
	switch {
	case limit > 0 && used >= limit:
		all = append(all, found("memory", Problem, fmt.Sprintf("the memory is full: %s of %s", size(used), size(limit)),
			"nothing new can be locked: the server refuses to write (OOM) what it cannot make room for", more)...)
	case limit > 0 && used*10 >= limit*9:
		all = append(all, found("memory", Warning, fmt.Sprintf("the memory is nearly full: %s of %s", size(used), size(limit)),
			"when it is full nothing new can be locked (OOM), or locks are evicted", more)...)
	}
	return all
}

// persistence looks at what the server knows after a restart.
func persistence(v *visit) []Finding {
	const check = "persistence"
	aof := v.info["aof_enabled"]
	if aof == "" {
		return nil
	}
	all := append(broken(v), unreadable(v)...)
	fsync, save := v.config["appendfsync"], v.config["save"]
	const remedy = "appendonly yes with appendfsync always; or wait for the longest lease (30 s by default) before you restart a server that was down"
	switch {
	case aof == "1" && fsync == "":
		all = append(all, found(check, Note, "there is an append-only file; how often it is synced cannot be seen",
			"unless it is synced with each write, a machine that crashes forgets the latest locks", remedy)...)
	case aof == "1" && fsync != "no" && v.config["no-appendfsync-on-rewrite"] == "yes":
		all = append(all, found(check, Warning, "the append-only file is not synced while it, or a snapshot, is written anew (no-appendfsync-on-rewrite yes)",
			"a machine that crashes meanwhile forgets the locks of the last half minute", "CONFIG SET no-appendfsync-on-rewrite no, and in redis.conf")...)
	case aof == "1" && fsync == "always":
		all = append(all, fine(check, "the append-only file is synced with each write")...)
	case aof == "1" && fsync == "everysec":
		all = append(all, found(check, Note, "the append-only file is synced once a second",
			"a machine that crashes forgets the locks of the last second or two; one that is restarted soon gives them away again", remedy)...)
	case aof == "1":
		all = append(all, found(check, Warning, "the append-only file is synced when the operating system decides (appendfsync "+fsync+")",
			"a machine that crashes forgets the locks of the last half minute", remedy)...)
	case v.config != nil && save != "":
		all = append(all, found(check, Warning, "there are only snapshots (save "+save+"), and no append-only file",
			"a restart forgets the locks that were acquired since the last snapshot, and brings back released locks whose leases have not ended: two holders may have one lock", remedy)...)
	case v.config == nil:
		all = append(all, found(check, Warning, "there is no append-only file; whether there are snapshots cannot be seen",
			"a restart forgets all locks, or the latest: two holders may have one lock", remedy)...)
	default:
		consequence := "a restart forgets all locks while their holders work on: two holders may have one lock until the next renewal"
		if v.number("connected_slaves") > 0 {
			consequence += "; and the replicas forget them, too"
		}
		all = append(all, found(check, Warning, "nothing is stored on disk", consequence,
			remedy+"; and see that nothing restarts it at once (systemd's Restart=, a container's restart policy)")...)
	}
	return all
}

// unreadable looks for an append-only file that a restart reads without what
// scripts have written. A script is a transaction in it, of which Redis from 7.0
// on and Valkey before 9.1 leave out what the default user has no right to.
// Whether he may log in is all the same to them. PEXPIREAT is what the file has of
// PEXPIRE.
func unreadable(v *visit) []Finding {
	const check = "persistence"
	valkey := v.info["valkey_version"]
	if v.info["aof_enabled"] != "1" || older(v.info["redis_version"], "7.0") || valkey != "" && !older(valkey, "9.1") {
		return nil
	}
	name := v.opt.Prefix + own
	var requests [][]string
	var keys []string // what each of them needs beside the command
	for _, c := range acl.InScripts {
		if c.Writes {
			requests = append(requests, strings.Fields(strings.Replace(strings.Replace(c.Args, "PEXPIRE ", "PEXPIREAT ", 1), " K", " "+name, 1)))
			keys = append(keys, "NAME")
		}
	}
	for _, p := range acl.SideKeys {
		requests, keys = append(requests, []string{"DEL", p.Of(name)}), append(keys, p.Of("NAME"))
	}
	if v.selects() {
		requests, keys = append(requests, []string{"SELECT", strconv.Itoa(v.opt.Database)}), append(keys, "")
	}
	dry := make([][]string, len(requests))
	for i, r := range requests {
		dry[i] = append([]string{"ACL", "DRYRUN", "default"}, r...)
	}
	var noCommands, noKeys []string
	for i, a := range v.askAll(dry) {
		var why *ReplyError
		switch {
		case errors.As(a.Err, &why) && why.Code == "NOPERM":
			return found(check, Note, "whether a restart reads all of the append-only file cannot be seen (ACL DRYRUN is refused)",
				"if the default user lacks a right, locks are gone after a restart, or never end", "give the user that runs doctor +acl|dryrun, or see: ACL GETUSER default")
		case a.Err != nil || str(a.Value) == "OK":
		case strings.Contains(str(a.Value), "no permissions to access "): // it may use the command
			noKeys = append(noKeys, keys[i])
		default:
			noCommands = append(noCommands, requests[i][0])
		}
	}
	var lacks []string
	if len(noCommands) > 0 {
		lacks = append(lacks, some(distinct(noCommands)))
	}
	if len(noKeys) > 0 {
		lacks = append(lacks, "keys named "+some(distinct(noKeys)))
	}
	if len(lacks) == 0 {
		return nil
	}
	return found(check, Warning, "a restart reads the append-only file without what scripts have written: the default user may not use "+strings.Join(lacks, ", nor "),
		"after a restart locks are gone while their holders work on, or have no TTL and never end",
		"ACL SETUSER default ~* &* +@all, and in the file of users; if nobody logs in as that user, switch it off, too: the rights count all the same")
}

// selects says whether what a script has written may begin with a SELECT inside
// the transaction: from Redis 7.2 on, where the append-only file has keys of
// another database than 0. Redis 7.0 writes the SELECT before the transaction.
func (v *visit) selects() bool {
	switch {
	case older(v.info["redis_version"], "7.2"):
		return false
	case v.opt.Database != 0:
		return true
	}
	for name := range v.info {
		if n, ok := strings.CutPrefix(name, "db"); ok && n != "0" {
			if _, err := strconv.Atoi(n); err == nil {
				return true
			}
		}
	}
	return false
}

// broken looks for a disk that cannot be written.
func broken(v *visit) []Finding {
	const (
		check  = "persistence"
		remedy = "see the server's log; the disk may be full, or not writable"
	)
	refuses := "the server refuses to write (MISCONF), so nothing can be locked or renewed"
	switch {
	case v.info["aof_enabled"] == "1" && cmp.Or(v.info["aof_last_write_status"], "ok") != "ok":
		return found(check, Problem, "the append-only file could not be written", refuses, remedy)
	case cmp.Or(v.info["rdb_last_bgsave_status"], "ok") != "ok":
		switch v.config["stop-writes-on-bgsave-error"] {
		case "no":
			return found(check, Warning, "the last snapshot has failed", "a restart goes back to an older one", remedy)
		case "":
			refuses = "unless stop-writes-on-bgsave-error is no, " + refuses
		}
		return found(check, Problem, "the last snapshot has failed", refuses, remedy)
	}
	return nil
}

const (
	lagSeconds = 10      // since a replica was heard
	lagBytes   = 1 << 20 // it has not confirmed
)

// replicas looks at those who hold the locks after a failover.
func replicas(v *visit) []Finding {
	const check = "replicas"
	if role := v.info["role"]; role != "master" {
		return nil
	}
	connected := v.number("connected_slaves")
	if connected == 0 {
		if v.cluster() {
			return found(check, Warning, "this primary has no replica",
				"when it is down, the locks of its slots can be neither acquired nor renewed", "add a replica to each primary")
		}
		return append(uncounted(v), fine(check, "there are none; while the server is down nothing can be locked")...)
	}
	all := uncounted(v)
	const lagged = "a failover to it forgets the locks that it has not seen; Redisson's lock() waits for it, by default up to a second each time"
	for i := range connected {
		r := v.replica(i)
		behind := v.number("master_repl_offset") - r.offset
		switch {
		case r.state != "online":
			all = append(all, found(check, Warning, fmt.Sprintf("replica %s is not online: %s", r.address, cmp.Or(r.state, "no state")),
				"it cannot take over with the locks that are held now", "see its log and the network between")...)
		case r.lag > lagSeconds:
			all = append(all, found(check, Warning, fmt.Sprintf("replica %s has not been heard for %d s", r.address, r.lag), lagged,
				"see its load and the network between")...)
		case behind > lagBytes:
			all = append(all, found(check, Warning, fmt.Sprintf("replica %s is %s behind", r.address, size(behind)), lagged,
				"see its load and the network between")...)
		}
	}
	if need, told := v.config["min-replicas-to-write"]; told && need == "0" {
		all = append(all, found(check, Note, fmt.Sprintf("%d connected, and writes need none of them (min-replicas-to-write 0)", connected),
			"a primary that is cut off still gives locks away, which nobody knows after the failover",
			"CONFIG SET min-replicas-to-write 1, and min-replicas-max-lag 10")...)
	}
	if len(all) == 0 {
		all = fine(check, fmt.Sprintf("%d connected, none is behind", connected))
	}
	return all
}

// uncounted says that nobody can tell how many replicas there are, or have what
// was written.
func uncounted(v *visit) (all []Finding) {
	for _, request := range [][]string{{"ROLE"}, {"WAIT", "0", "1"}} {
		if _, why := v.ask(request...); why != nil {
			all = append(all, found("replicas", Note, fmt.Sprintf("%s is refused (%s)", request[0], why.Code),
				"replicas cannot be asked to acknowledge: AckAny requires none, and AckRequired is refused", "give the user +role and +wait, or set Config.Acks to AckOff")...)
		}
	}
	return all
}

// A replica is a line of INFO.
type replica struct {
	address, state string
	offset, lag    int64
}

func (v *visit) replica(i int64) replica {
	fields := map[string]string{}
	for pair := range strings.SplitSeq(v.info["slave"+strconv.FormatInt(i, 10)], ",") {
		name, value, _ := strings.Cut(pair, "=")
		fields[name] = value
	}
	offset, _ := strconv.ParseInt(fields["offset"], 10, 64)
	lag, _ := strconv.ParseInt(fields["lag"], 10, 64)
	return replica{fields["ip"] + ":" + fields["port"], fields["state"], offset, lag}
}
