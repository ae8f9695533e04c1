package doctor

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/redlatch/redlatch/internal/wire"
)

// What redlatch goes through, and no more.
const (
	mostFields = 10_000          // of a lock
	mostHolds  = 10_000          // of a read-write lock, all together
	mostSwept  = 1000            // dead waiters in one request
	never      = 922337203685477 // ms; Redisson's mark of what never ends, and no time is beyond it
	looked     = 10              // fields by which a hash is known
)

// contents are what nobody expects in the keys of locks and synchronizers.
type contents struct {
	v       *visit
	shared  []string // what two names have in common that share a sorted set
	numbers []string // keys with a number that is no time or count
	large   []string // locks that are not gone through
}

// sets looks at sorted sets: their scores are times.
func (c *contents) sets(names []string) {
	var times []string
	for _, name := range names {
		if owners := ownersOf(name); len(owners) > 0 {
			times = append(times, name)
			c.shared = append(c.shared, wire.Tag(owners[0]))
		}
	}
	c.v.each(times, func(name string) []string { return []string{"ZRANGE", name, "-1", "-1", "WITHSCORES"} }, func(name string, last any) {
		pair := list(last)
		if len(pair) == 1 { // RESP3 has a list of pairs
			pair = list(pair[0])
		}
		if len(pair) == 2 && !isNumber(str(pair[1]), never) {
			c.numbers = append(c.numbers, name)
		}
	})
}

// ownersOf returns the names of the objects that a sorted set may belong to.
func ownersOf(key string) []string {
	for _, p := range []string{wire.LockTimeout, wire.RWWriters} {
		if strings.HasPrefix(key, p+":") {
			return wire.PrefixedNames(p, key)
		}
	}
	for _, s := range []string{wire.PermitTimeout, wire.RatePermits} {
		if strings.HasSuffix(key, ":"+s) {
			return wire.SuffixedNames(key, s)
		}
	}
	return nil
}

// isNumber says whether somebody can count with a text.
func isNumber(text string, most float64) bool {
	n, err := strconv.ParseFloat(text, 64)
	return err == nil && math.Abs(n) <= most
}

// hashes looks into those that have the fields of a lock or a rate limiter. So has
// what a barrier keeps of who has arrived, but its numbers are no counts of holds.
func (c *contents) hashes(names []string) {
	var ours, small []string
	c.v.each(names, func(name string) []string { return []string{"HRANDFIELD", name, strconv.Itoa(looked)} }, func(name string, fields any) {
		if !wire.NamesOwners(name) && slices.ContainsFunc(list(fields), func(field any) bool { return isField(str(field)) }) {
			ours = append(ours, name)
		}
	})
	c.v.each(ours, func(name string) []string { return []string{"HLEN", name} }, func(name string, n any) {
		if num(n) <= mostFields {
			small = append(small, name)
		}
	})
	large := func(name string, first any) {
		if mode := str(first); mode == wire.ModeRead || mode == wire.ModeWrite {
			c.large = append(c.large, name) // a group of locks may be as large as it likes
		}
	}
	isSmall := map[string]bool{}
	for _, name := range small {
		isSmall[name] = true
	}
	c.v.each(slices.DeleteFunc(ours, func(name string) bool { return isSmall[name] }),
		func(name string) []string { return []string{"HGET", name, wire.Mode} }, large)
	c.v.each(small, func(name string) []string { return []string{"HGETALL", name} }, func(name string, all any) { c.hash(name, list(all)) })
}

// isField says whether a hash with such a field may be a lock or a rate limiter.
func isField(field string) bool {
	client, _ := wire.ClientOf(strings.TrimSuffix(field, wire.WriteField("")))
	return client != "" || field == wire.Mode || field == wire.IntervalField || strings.HasSuffix(field, wire.GroupExpiry)
}

// hash looks at the numbers in a hash, of which all fields and values are given in
// turn.
func (c *contents) hash(name string, all []any) {
	holds, bad := 0.0, false
	for pair := range slices.Chunk(all, 2) {
		if len(pair) < 2 {
			return
		}
		field, text := str(pair[0]), str(pair[1])
		owner := strings.TrimSuffix(field, wire.WriteField(""))
		client, _ := wire.ClientOf(owner)
		switch {
		case strings.HasSuffix(field, wire.GroupExpiry), field == wire.IntervalField, field == wire.KeepAliveField:
			bad = bad || !isNumber(text, never)
		case field == wire.RateField:
			bad = bad || !isNumber(text, math.MaxInt32)
		case client != "" && !strings.HasSuffix(field, wire.GroupCount):
			n, err := strconv.ParseFloat(text, 64)
			bad = bad || err != nil || !(math.Abs(n) <= math.MaxInt32)
			holds += n
		}
	}
	switch {
	case bad:
		c.numbers = append(c.numbers, name)
	case holds > mostHolds:
		c.large = append(c.large, name)
	}
}

// tokens looks at fencing tokens: they are counted by INCR.
func (c *contents) tokens(keys []string) {
	c.v.each(keys, func(name string) []string { return []string{"GETRANGE", name, "0", "20"} }, func(name string, text any) {
		if _, err := strconv.ParseInt(str(text), 10, 64); err != nil {
			c.numbers = append(c.numbers, name)
		}
	})
}

// findings tells of all that; queued are fair locks that have a queue.
func (c *contents) findings(queued []string) []Finding {
	var all []Finding
	for _, name := range queued {
		c.shared = append(c.shared, wire.Tag(name))
	}
	if names := c.twins(); len(names) > 0 {
		all = found("twins", Warning, "objects x and {x} that share side keys: "+some(names),
			"fair locks wait for each other, and permits of semaphores and rate limiters are counted for both", "use one of the two names")
	}
	if names := distinct(c.numbers); len(names) > 0 {
		all = append(all, found("contents", Warning, "keys with a number that is no time or count: "+some(names),
			"a caller that waits because of it may wait for ever, and Redisson's clients fail", "see who writes that; delete the keys when nobody uses the object")...)
	}
	if names := distinct(c.large); len(names) > 0 {
		all = append(all, found("contents", Warning, fmt.Sprintf("read-write locks of more than %d holds: %s", mostHolds, some(names)),
			"redlatch refuses to go through them, and each unlock by a Redisson client blocks the server for as long as it takes", "see who writes that; delete the keys when nobody uses the lock")...)
	}
	var long []string
	c.v.each(distinct(queued), func(name string) []string {
		return []string{"LINDEX", wire.Prefix(wire.LockQueue, name), strconv.Itoa(mostSwept)}
	}, func(name string, id any) {
		if id != nil {
			long = append(long, name)
		}
	})
	if len(long) > 0 {
		all = append(all, found("queues", Note, fmt.Sprintf("fair locks that more than %d wait for: %s", mostSwept, some(long)),
			"if the waiters have died, redlatch drops that many with a request, and Redisson drops all of them at once, which blocks the server for that time", "see whether the waiters live")...)
	}
	return all
}

// twins returns the names of which both are there.
func (c *contents) twins() (both []string) {
	tags := slices.DeleteFunc(distinct(c.shared), func(tag string) bool { return tag == "" })
	for _, name := range []func(tag string) string{func(tag string) string { return tag }, func(tag string) string { return "{" + tag + "}" }} {
		there := map[string]bool{}
		c.v.each(tags, func(tag string) []string { return []string{"EXISTS", name(tag)} }, func(tag string, n any) { there[tag] = n == int64(1) })
		tags = slices.DeleteFunc(tags, func(tag string) bool { return !there[tag] })
	}
	return tags
}
