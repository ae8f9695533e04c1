package search

const (
	again   = "what follows comes to the same"
	chain   = "TestAWaiterOfRedissonFindsTheScoresThatItExpects"
	counter = "only a Lock with Fenced, of an election's name, gives its counter a TTL: TestATermHasItsNumberForAsLongAsItLasts"
	waited  = "replicas are waited for, of which a search has none: TestNothingIsAcknowledgedThatNoReplicaHas"
	toldToo = "redlatch's waiters look every two seconds; Redisson's hear of it: TestRedissonHearsThatALockIsFreeSooner"
)

// explained says of mutants why nothing is wrong with them that a search could
// find.
var explained = map[string]string{
	"readwrite.write.take.lua: return token: deleted":                                                           again,
	"lock.keep.lua: if ARGV[3] ~= '' then: negated":                                                             toldToo,
	"lock.keep.lua: redis.call('PUBLISH', ARGV[3], '0'): deleted":                                               toldToo,
	"readwrite.write.intent.lua: redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now): deleted":                 "who is over is not counted; the set would grow, for as long as others announce themselves",
	"session.luainc: return nil: deleted":                                                                       again,
	"grouplock.renew.lua: break: deleted":                                                                       again,
	"ratelimiter.rate.luainc: local kept = redis.call('HGET', KEYS[1], 'keepAliveTime'): deleted":               "only ratelimiter.set meets one that was kept: TestAnotherRateEndsNoExpire",
	"token.luainc: elseif ttl < 0 then: negated":                                                                counter,
	"token.luainc: redis.call('PERSIST', token_key): deleted":                                                   counter,
	"expirable.take.lua: again = again or costs == 0: deleted":                                                  waited,
	"expirable.take.lua: again = again or costs == 0: negated":                                                  waited,
	"expirable.take.lua: if again then: negated":                                                                waited,
	"expirable.take.lua: redis.call('PEXPIRE', timeouts, 1000000000): deleted":                                  waited,
	"expirable.renew.lua: elseif ARGV[2 * i] ~= '0' then: deleted":                                              waited,
	"expirable.renew.lua: elseif ARGV[2 * i] ~= '0' then: negated":                                              waited,
	"expirable.renew.lua: redis.call('PEXPIRE', timeouts, ttl < 0 and 1000000000 or math.max(1, ttl)): deleted": waited,
	"fairlock.luainc: return (3): deleted":                                                                      again,
	"fairlock.take.lua: redis.call('DEL', queue, timeouts, alive): deleted":                                     "a release does it, too; what a lost key has left: TestAQueueThatLostOneOfItsKeysRecovers",
	"fairlock.take.lua: look(): deleted":                                                                        "the front is looked at each time, and the chain stays exact, which costs time: " + chain,
	"fairlock.luainc: tighten(true) (2): deleted":                                                               "the next hand-off makes the chain exact; that a poll does, sooner: " + chain,
	"fairlock.luainc: if not ours(id) then (2): negated":                                                        "the chain stays exact, which costs time: " + chain,
	"fairlock.luainc: n, scored[2 * i - 1], scored[2 * i] = i, now + allowance, id: deleted":                    "the same: " + chain,
}

// unsearched says of scripts why no search runs them, by what their names begin
// with.
var unsearched = map[string]string{
	"barrier.info":       "it only reads",
	"ratelimiter.":       "its model is tests/synchronizers/ratelimiter_model_test.go",
	"latch.count":        "it only reads",
	"semaphore.info":     "it only reads",
	"semaphore.read":     "it only reads",
	"expirable.left":     "it only reads",
	"fairlock.heard":     "it has one key, and notes there what each poll notes; what for: TestNobodyLosesItsPlaceWhileASlotStaysMarked",
	"multilock.take":     "it takes several locks, each as lock.take does",
	"control.":           "clients talk by it about a forced release; no lock is touched",
	"client.":            "clients say by it who they are; no lock is touched",
	"pubsub.":            "it stores nothing",
	"key.expire":         "its stories are in tests/synchronizers/semaphore_expire_test.go",
	"key.types":          "it only reads",
	"lock.info":          "it only reads",
	"lock.ttls":          "it only reads",
	"readwrite.read.ask": "it only reads",
}
