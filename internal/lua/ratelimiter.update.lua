-- Gives a limiter that has a rate another one. What was given in the new interval
-- still counts, unless the type is another one.
-- KEYS limiter value permits own_value own_permits recount own_recount session
-- ARGV number session_ms rate interval_ms type keep_alive_ms (as for ratelimiter.tryset)
-- returns {number, 1}, or {number, 0} if the limiter has no rate
local session, number, session_ms = KEYS[8], ARGV[1], ARGV[2]
-- include session
-- include replay
local was = redis.call('HGET', KEYS[1], 'type')
if not was then
  return answered(0)
end
-- include ratelimiter.rate
redis.call('DEL', KEYS[2], KEYS[4])
if was ~= ARGV[5] then
  redis.call('DEL', KEYS[3], KEYS[5])
  return answered(1)
end
-- include ratelimiter
store(sweep(), true)
return answered(1)
