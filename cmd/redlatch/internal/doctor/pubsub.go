package doctor

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redlatch/redlatch/internal/wire"
)

// own is how the keys and channels begin that doctor uses.
const own = "redlatch_doctor:"

// draws is after how many names none is found any more whose slot is, or is not,
// one of certain slots.
const draws = 1 << 16

// name returns a name that nobody uses, and whose slot this server has. In a
// cluster that does not tell its slots there is none.
func (v *visit) name() (string, bool) {
	slots := [][2]int64{{0, 16383}}
	if v.cluster() {
		slots = v.slots()
	}
	for range draws {
		if name := v.anyName(); isIn(slots, name) {
			return name, true
		}
	}
	return "", false
}

// anyName returns a name that nobody uses, in any slot.
func (v *visit) anyName() string {
	return v.opt.Prefix + own + strconv.FormatUint(rand.Uint64(), 16) //nolint:gosec // it is no secret
}

// isIn says whether the slot of a name is one of these.
func isIn(slots [][2]int64, name string) bool {
	slot := int64(wire.Slot(name))
	return slices.ContainsFunc(slots, func(s [2]int64) bool { return s[0] <= slot && slot <= s[1] })
}

// slots returns the ranges of slots of this node.
func (v *visit) slots() (ranges [][2]int64) {
	id, _ := v.ask("CLUSTER", "MYID")
	all, _ := v.ask("CLUSTER", "SLOTS")
	for _, entry := range list(all) {
		e := list(entry) // from, to, [ip, port, id, ...] of the primary, ...
		if len(e) < 3 {
			continue
		}
		if primary := list(e[2]); len(primary) > 2 && str(primary[2]) == str(id) {
			ranges = append(ranges, [2]int64{num(e[0]), num(e[1])})
		}
	}
	return ranges
}

// elsewhere says whether the server refuses keys because another node has them.
// What it says of itself is no evidence: a proxy, or the endpoint of a managed
// server, may pass on what one of its shards says, and serves the keys of all.
func (v *visit) elsewhere() bool {
	if !v.cluster() {
		return false
	}
	const tries = 100 // so that some are of other slots, where nobody knows which this node has
	slots := v.slots()
	var requests [][]string
	for range draws {
		if name := v.anyName(); !isIn(slots, name) {
			requests = append(requests, []string{"EVAL", "return 1", "1", name})
		}
		if len(requests) == tries {
			break
		}
	}
	return slices.ContainsFunc(v.askAll(requests), func(a Answer) bool {
		var why *ReplyError
		return errors.As(a.Err, &why) && why.Code == "MOVED"
	})
}

// sharded says whether clients use sharded Pub/Sub here.
func (v *visit) sharded() bool {
	if !v.cluster() {
		return false
	}
	_, why := v.ask("PUBSUB", "SHARDNUMSUB")
	return why == nil || why.Code == "NOPERM" && !older(v.info["redis_version"], "7.0")
}

// heardLimit is how long a message may take.
const heardLimit = 5 * time.Second

// pubsub sends a message and waits for it.
func pubsub(v *visit) []Finding {
	all := heard(v, "pubsub", false)
	if v.sharded() {
		all = append(all, heard(v, "pubsub", true)...)
	}
	return all
}

const (
	tell        = "redis.call('PUBLISH', ARGV[1], ARGV[2]) return redis.call('PUBSUB', 'NUMSUB', ARGV[1])[2]"
	tellSharded = "redis.call('SPUBLISH', KEYS[1], ARGV[2]) return redis.call('PUBSUB', 'SHARDNUMSUB', KEYS[1])[2]"
)

// heard tries one kind of Pub/Sub.
func heard(v *visit, check string, sharded bool) []Finding {
	kind, publish, subscribe := "", "PUBLISH", "SUBSCRIBE"
	if sharded {
		kind, publish, subscribe = "sharded ", "SPUBLISH", "SSUBSCRIBE"
	}
	deaf := "waiters of redlatch poll every two seconds instead of being woken; Redisson's lock() fails or waits for the whole lease"
	if !sharded && v.sharded() {
		deaf = "a force release is not confirmed, and clients cannot be asked who they are; waiters poll every two seconds where Config.Redisson.PubSub, or Redisson, says classic"
	}
	const (
		remedy = "give the user +subscribe, +ssubscribe and the channels redisson_* and redlatch_*; a proxy must pass Pub/Sub on"
	)
	name, ok := v.name()
	if !ok {
		return nil
	}
	channel := wire.Prefix(wire.LockChannel, name)
	messages, stop, err := v.Listen(v.ctx, channel, sharded)
	if err != nil {
		var refusal *ReplyError
		if !errors.As(err, &refusal) {
			v.fail(err)
			return nil
		}
		return found(check, Warning, fmt.Sprintf("%s on a lock's channel is refused (%s)", subscribe, refusal.Code), deaf, remedy)
	}
	defer stop()

	request := []string{"EVAL", tell, "0", channel, name}
	if sharded {
		request = []string{"EVAL", tellSharded, "1", channel, channel, name}
	}
	sent := time.Now()
	listeners, why := v.ask(request...)
	if why != nil {
		if denied(why.Text) != another {
			return nil // the checks of scripts and commands have told
		}
		return found(check, Note, publish+" in a script failed, so messages could not be tried: "+why.Text,
			"if messages do not arrive, "+deaf, "see the check of commands")
	}
	timer := time.NewTimer(heardLimit)
	defer timer.Stop()
	select {
	case <-messages:
	case <-timer.C:
		return found(check, Problem, fmt.Sprintf("a %smessage did not arrive within %v", kind, heardLimit), deaf, remedy)
	case <-v.ctx.Done():
		v.fail(v.ctx.Err())
		return nil
	}
	took := time.Since(sent)
	if num(listeners) < 1 {
		return found(check, Note, "a "+kind+"message arrives, but PUBSUB does not count who listens",
			"a process hands a lock to its own goroutines for longer, as if no other process waited", "connect to the server itself, and not through a proxy")
	}
	return fine(check, fmt.Sprintf("a %smessage arrives after %s", kind, short(took)))
}

// sharding compares the kinds of Pub/Sub that the clients of a cluster use.
func sharding(v *visit) []Finding {
	const (
		check  = "sharding"
		remedy = "give redlatch the mode that all Redisson clients use, or PubSubBoth; from Redisson 3.29 on shardedSubscriptionMode OFF or ON makes them agree"
	)
	if !v.sharded() {
		return nil
	}
	classic, why := v.ask("PUBSUB", "CHANNELS", "redisson_*")
	inShards, whyShards := v.ask("PUBSUB", "SHARDCHANNELS", "redisson_*")
	if why != nil || whyShards != nil {
		return found(check, Note, "PUBSUB CHANNELS is refused", "it is not known whether clients of both kinds of Pub/Sub share the cluster", remedy)
	}
	switch c, s := listened(classic), listened(inShards); {
	case c > 0 && s > 0:
		return found(check, Warning, fmt.Sprintf("clients listen on %d classic and %d sharded channels of Redisson", c, s),
			"the two kinds of clients do not hear each other: waiters are not woken, and Redisson's semaphores and latches can wait for ever; only redlatch with PubSubBoth is on both", remedy)
	case c > 0:
		return found(check, Note, fmt.Sprintf("clients listen on %d classic channels of Redisson, and the cluster knows sharded Pub/Sub", c),
			"they are Redisson up to 3.18, or with shardedSubscriptionMode OFF; they and redlatch with PubSubAuto do not hear each other", "set Config.Redisson.PubSub to PubSubClassic, or to PubSubBoth while both kinds are in use")
	}
	return fine(check, "sharded Pub/Sub, as redlatch and Redisson from 3.22 on choose by themselves here")
}

// listened counts channels, but for those of doctor.
func listened(channels any) (n int) {
	for _, c := range list(channels) {
		if !strings.Contains(str(c), own) {
			n++
		}
	}
	return n
}
