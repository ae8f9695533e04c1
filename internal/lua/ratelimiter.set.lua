-- Gives a limiter a rate, and lets it begin anew. The state that other clients
-- have for themselves stays: it is theirs.
-- KEYS limiter value permits own_value own_permits recount own_recount session
-- ARGV number session_ms rate interval_ms type keep_alive_ms (as for ratelimiter.tryset)
-- returns {number, 1}
local session, number, session_ms = KEYS[8], ARGV[1], ARGV[2]
-- include session
-- include replay
redis.call('DEL', KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7])
-- include ratelimiter.rate
return answered(1)
