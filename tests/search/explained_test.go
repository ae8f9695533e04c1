package search

const (
	again  = "what follows comes to the same"
	beside = "nobody reads beside another's write hold; if somebody should, the writer keeps the lock"
)

// explained says of mutants why nothing is wrong with them that a search could find.
var explained = map[string]string{
	"readwrite.write.take.lua: return token: deleted":                             again,
	"readwrite.release.lua: return 2: deleted":                                    beside,
	"readwrite.release.lua: redis.call('HSET', KEYS[1], 'mode', 'read'): deleted": beside,
	"fairlock.release.lua: else (2): deleted":                                     again,
	"grouplock.renew.lua: break: deleted":                                         again,
}
