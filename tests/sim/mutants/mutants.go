// Package mutants has faults of the library that are put in on purpose: the
// checker of the simulation has to notice each of them. Package replay looks for
// them, and docs/robustness.md says what it took.
package mutants

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/redlatch/redlatch/tests/sim/results"
)

// A Mutant is the library with one fault of ours: the checker has to notice what
// comes of it within so many seeds, by this word.
type Mutant struct {
	Rule     string // of docs/guarantees.md, as package results names it
	Name     string
	File     string // of the root module
	Old, Now string // what stands in it once, and what stands there instead
	Type     string // that is played
	Seeds    uint64
	Says     string // what is said of it, or a part of that
}

// All are all of them.
var All = []Mutant{
	{
		"the margin", "the margin is 10 ms, however fast the server's clock", "internal/renew/window.go",
		"return 10*time.Millisecond + lease/50", "return 10*time.Millisecond + 0*lease",
		"lock", 20, "the server has let go of it before",
	},
	{
		"trust counts from the sending", "trust counts from the reply", "internal/renew/window.go",
		"	trust := lease - Margin(lease)\n", "	trust := lease - Margin(lease)\n	sent = time.Now()\n",
		"lock", 60, "the server has let go of it before",
	},
	{
		"a release frees what is its own", "a release frees the lock of anybody", "internal/lua/lock.release.lua",
		"redis.call('HDEL', KEYS[1], ARGV[1]) == 0", "redis.call('DEL', KEYS[1]) == 0",
		"lock", 60, "",
	},
	{
		"one owner at a time", "what a Redisson client has is free", "internal/lua/lock.take.lua",
		"if size == 0 then", "if size == 0 or string.sub(fields[1], 15, 15) == '4' then redis.call('DEL', KEYS[1])",
		"lock", 20, "Redisson's process",
	},
	{
		"a lease lasts as long as was confirmed", "a replay does not raise the TTL", "internal/lua/lock.take.lua",
		"raise(KEYS[1], ARGV[1])", "if false then raise(KEYS[1], ARGV[1]) end",
		"lock", 60, "",
	},
	{
		"renewals", "a renewal does not raise the TTL", "internal/lua/lock.renew.lua",
		"if lease > 0 then", "if false then",
		"lock", 60, "",
	},
	{
		"renewals", "a renewal says yes to those who have lost it", "internal/lua/lock.renew.lua",
		"    results[i] = 0\n", "    results[i] = 1\n",
		"lock", 60, "beside",
	},
	{
		"renewals", "a renewal says no to those who have it", "internal/lua/lock.renew.lua",
		"    results[i] = 1\n", "    results[i] = 0\n",
		"lock", 20, "nothing took it away",
	},
	{
		"tokens", "a token is given twice", "internal/lua/token.luainc",
		"token = redis.call('INCR', token_key)", "token = tonumber(redis.call('GET', token_key) or redis.call('INCR', token_key))",
		"fenced", 20, "token",
	},
	{
		"permits", "more permits are given than there are", "internal/lua/expirable.take.lua",
		"if costs > 0 and costs > available then", "if costs > 0 and costs > available + 1 then",
		"permits", 20, "beside",
	},
	{
		"permits", "permits that are given back are nobody's", "internal/lua/expirable.release.lua",
		"redis.call('INCRBY', free, remove(back))", "redis.call('INCRBY', free, 0 * remove(back))",
		"permits", 20, "for ever",
	},
	{
		"readers and writers", "a writer does not mind who reads", "internal/lua/readwrite.write.take.lua",
		"if redis.call('EXISTS', KEYS[1]) == 0 then", "if redis.call('HGET', KEYS[1], 'mode') ~= 'write' then",
		"readwrite", 20, "beside",
	},
	{
		"one owner at a time", "values of a group are taken whoever has them", "internal/lua/grouplock.take.lua",
		"  if holder and holder ~= owner then", "  if holder and holder ~= owner and value == values[1] and #values > 1 then",
		"group", 20, "beside",
	},
	{
		"permits", "a semaphore gives one permit too many", "internal/lua/semaphore.exchange.lua",
		"if sum + tonumber(ARGV[i]) > tonumber(available) then", "if sum + tonumber(ARGV[i]) > tonumber(available) + 1 then",
		"semaphore", 20, "cannot be in any order",
	},
	{
		"requests that count", "a latch counts a replay again", "internal/lua/latch.down.lua",
		"-- include replay\n", "",
		"latch", 20, "have counted",
	},
	{
		"requests that count", "a request that is executed twice counts twice", "internal/lua/session.luainc",
		"if tonumber(n) >= tonumber(number) then", "if again and tonumber(n) >= tonumber(number) then",
		"semaphore", 20, "cannot be in any order",
	},
	{
		"barriers", "a barrier does not wait for the last one", "internal/lua/barrier.arrive.lua",
		"if index == 0 then", "if index <= 1 then",
		"barrier", 20, "cannot be in any order",
	},
	{
		"late requests", "a barrier counts a late request in the next generation", "internal/lua/barrier.arrive.lua",
		"if current ~= generation or index then", "if index then",
		"barrier", 60, "",
	},
	{
		"rates", "a limiter gives one permit too many", "internal/lua/ratelimiter.take.lua",
		"if n + wanted > free then", "if n + wanted > free + 1 then",
		"limiter", 20, "cannot be in any order",
	},
	{
		"rates", "a limiter gives a permit again too early", "internal/lua/ratelimiter.luainc",
		"redis.call('ZCOUNT', permits, '-inf', now - interval)", "redis.call('ZCOUNT', permits, '-inf', now - interval * 0.9)",
		"limiter", 20, "cannot be in any order",
	},
	{
		"MaxHold", "a hold lasts for twice its MaxHold", "internal/lock/term/hold.go",
		"h.own.Until = now.Add(d)", "h.own.Until = now.Add(2 * d)",
		"lock", 20, "longer than MaxHold",
	},
	{
		"barriers", "a barrier tells all that they were the last one", "internal/lua/barrier.arrive.lua",
		"lives()\nreturn {'waits', '', index}", "lives()\nreturn {'waits', '', 0}",
		"barrier", 20, "cannot be in any order",
	},
	{
		"one owner at a time", "a fair lock is given whoever has it", "internal/lua/fairlock.take.lua",
		"if not holder and (not whose or whose == owner) then", "if not whose or whose == owner then",
		"fair", 20, "beside",
	},
	{
		"several locks", "a joint take minds only who has the first lock", "internal/lua/multilock.take.lua",
		"if held[i] and held[i] ~= ARGV[i + 1] then", "if held[i] and held[i] ~= ARGV[i + 1] and i == 1 then",
		"multi", 20, "beside",
	},
	{
		"several locks", "who waits for another lock keeps what it has of a MultiLock", "internal/multi/acquire.go",
		"			g.undo(ctx)\n", "			_ = g\n",
		"multi", 20, "for ever",
	},
	{
		"elections", "two terms have one number", "internal/lua/token.luainc",
		"token = redis.call('INCR', token_key)", "token = tonumber(redis.call('GET', token_key) or redis.call('INCR', token_key))",
		"election", 20, "token",
	},
	{
		"Shutdown", "a shutdown does not wait for what is held", "client.go",
		"late := c.awaitReleases(ctx)", "var late error",
		"lock", 40, "and still had",
	},
	{
		"red locks", "a minority is enough", "internal/multi/majority.go",
		"need: len(locks)/2 + 1", "need: len(locks) / 2",
		"red", 20, "trusts the RedLock",
	},
	{
		"red locks", "a RedLock lives as long as one vote", "internal/multi/hold.go",
		"if len(holds)-len(ends) >= g.need {", "if len(holds) > len(ends) {",
		"red", 20, "trusts the RedLock",
	},
	{
		"trust counts from the sending", "a vote is trusted from the reply", "internal/renew/window.go",
		"	trust := lease - Margin(lease)\n", "	trust := lease - Margin(lease)\n	sent = time.Now()\n",
		"red", 60, "the server has let go of it before",
	},
	{
		"replicas that confirm", "replicas are not waited for", "internal/request/acks.go",
		"if r.Err != nil || acked >= n {", "if r.Err != nil || acked >= 0 {",
		"acked", 20, "",
	},
	{
		"replicas that confirm", "replicas are not waited for by what prolongs a hold", "internal/request/acks.go",
		"k.policy == Required\n", "false\n",
		"acked", 60, "",
	},
	{
		"several locks", "locks of several slots are taken together", "internal/request/slots.go",
		"return s.Traits.Cluster || s", "return s",
		"cluster", 20, "which are of several slots",
	},
	{
		"the margin", "there is no margin", "internal/renew/window.go",
		"return 10*time.Millisecond + lease/50", "return 0 * lease",
		"lock", 20, "the server has let go of it before",
	},
	{
		"re-entry", "a lock that is not re-entrant is entered again", "internal/lock/term/scope.go",
		"	if l.Wish.NonReentrant {\n", "	if false {\n",
		"nonreentrant", 20, "within itself",
	},
	{
		"requests that count", "a request that comes late counts again", "internal/lua/session.luainc",
		"if tonumber(n) >= tonumber(number) then", "if tonumber(n) == tonumber(number) then",
		"semaphore", 60, "",
	},
	{
		"detached holds", "a client releases a hold that it has detached", "internal/lock/wait/table.go",
		"(l.Kind.Part || c.MayBeDetached(owner)) &&", "l.Kind.Part &&",
		"lock", 20, "",
	},
	{
		"callers of one process", "a process passes its lock on to two callers", "internal/gate/gate.go",
		"	return g.admit(v)\n", "	defer g.admit(v)\n	return g.admit(v)\n",
		"lock", 20, "beside",
	},
	{
		"turns", "a process that owes a turn waits until somebody takes it", "internal/handoff/budget.go",
		"	return max(0, u.Rest.Sub(now))\n", "	return max(u.pause, u.Rest.Sub(now))\n",
		"lock", 20, "",
	},
	{
		"what is given in a fair lock's queue", "a waiter takes any message for its lock", "internal/lock/fair/spare.go",
		"		if n.Payload == e.nonce {\n", "		if n.Payload != \"\" {\n",
		"fair", 20, "",
	},
	{
		"late requests", "a client takes a hold of its own for that of a late request", "internal/lock/wait/table.go",
		"!c.Made(owner) || c.Known(l.Key, owner) || c.Lapsed(owner) ||", "!c.Made(owner) || c.Lapsed(owner) ||",
		"fair", 20, "",
	},
	{
		"several locks", "several locks are trusted as long as one of them is", "internal/multi/hold.go",
		"if len(holds)-len(ends) >= g.need {", "if len(holds) > len(ends) {",
		"multi", 20, "",
	},
	{
		"Shutdown", "what late requests have taken is not released at the end", "internal/request/orphans.go",
		"		d.server.Go(x.reap)\n	}\n}", "	}\n}",
		"readwrite", 100, "has shut down",
	},
	{
		"forced releases", "a forced release of a writer frees whatever there is", "internal/lua/readwrite.write.force.lua",
		"redis.call('HEXISTS', lock, ARGV[i] .. ':write')", "redis.call('EXISTS', lock)",
		"readwrite", 60, "",
	},
	{
		"forced releases", "who is to let go says that it has, and goes on", "internal/lock/locks.go",
		"t.Lose(holdctx.Revoked)", "holdctx.Revoked != \"\"",
		"lock", 60, "is taken from it",
	},
	{
		"turns", "a process leaves nobody a turn", "internal/lock/wait/handoff.go",
		"turn := e.budget.Over(now)", "turn := false && e.budget.Over(now)",
		"lock", 20, "for its turn",
	},
	{
		"turns", "a hand-off with a round trip of its own begins a new quantum", "internal/lock/wait/take.go",
		"		if fresh {\n			e.budget.Begin(now, true)\n", "		{\n			e.budget.Begin(now, fresh)\n",
		"fenced", 20, "for its turn",
	},
	{
		"turns", "a process leaves nobody a turn at its permits", "internal/permit/countedworker.go",
		"q.hand.n >= q.Line.First().Want.n && q.turns.Yields(now) {", "q.hand.n >= q.Line.First().Want.n && q.turns.Yields(now) && q.hand.n > Most {",
		"semaphore", 20, "for its turn",
	},
	{
		"callers of one process", "who gives up as the gate lets it in leaves it closed", "internal/gate/gate.go",
		"	if !w.place.Taken() {\n		return false\n	}\n", "	if !w.place.Taken() {\n		w.in.Store(false)\n		return true\n	}\n",
		"lock", 20, "",
	},
	{
		"barriers", "a barrier takes those for dead who live", "internal/lua/barrier.alive.luainc",
		"redis.call('ZADD', alive, now + lease_ms, client)", "redis.call('ZADD', alive, now + lease_ms / 4, client)",
		"barrier", 20, "is told that the barrier is broken",
	},
	{
		"turns", "readers let others in whoever waits to write", "internal/lua/readwrite.read.ask.lua",
		"return tonumber(redis.call('PUBSUB', 'NUMSUB', ARGV[2])[2]) - tonumber(ARGV[3])", "return 0",
		"readwrite", 20, "for its turn",
	},
	{
		"forced releases", "who is to let go does not listen", "internal/revoke/revoke.go",
		"		k.revokes.Add(func() { k.revoke(m) })\n", "		_ = k.revoke\n",
		"lock", 20, "which is not told so before",
	},
	{
		"several locks", "a client forgets that an endpoint counts slots", "internal/request/slots.go",
		"&& !s.senders.slots.count.Swap(true) {", "&& s.senders.slots.count.Load() {",
		"endpoint", 20, "knows that these count",
	},
}

// Listed returns all mutants as the page has them, before anybody has looked for
// them.
func Listed() (all []results.Mutant) {
	for _, m := range All {
		all = append(all, results.Mutant{Name: m.Name, Rule: m.Rule, Type: m.Type, Most: m.Seeds})
	}
	return all
}

// Overlay writes into dir what is different in the mutant, and returns the file
// that tells the go command of it. root is the folder of the root module.
func (m Mutant) Overlay(root, dir string) (string, error) {
	file, err := filepath.Abs(filepath.Join(root, m.File))
	if err != nil {
		return "", err
	}
	source, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(source), m.Old); n != 1 {
		return "", fmt.Errorf("%s has %d times what the mutant changes: %q", m.File, n, m.Old)
	}
	changed, list := filepath.Join(dir, "changed"), filepath.Join(dir, "overlay.json")
	text, err := json.Marshal(map[string]map[string]string{"Replace": {file: changed}})
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(changed, []byte(strings.Replace(string(source), m.Old, m.Now, 1)), 0o600); err != nil {
		return "", err
	}
	return list, os.WriteFile(list, text, 0o600)
}
