-- Deletes a limiter, its state, and this client's.
-- KEYS limiter value permits own_value own_permits recount own_recount session
-- ARGV number session_ms
-- returns {number, 1}, or {number, 0} if there was nothing
local session, number, session_ms = KEYS[8], ARGV[1], ARGV[2]
-- include session
-- include replay
-- include ratelimiter.only
return answered(math.min(1, redis.call('DEL', KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7])))
