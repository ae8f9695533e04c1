-- Gives a limiter that has a rate another one. What was given in the new interval
-- still counts, unless the type is another one.
-- KEYS limiter value permits own_value own_permits session
-- ARGV number session_ms rate interval_ms type keep_alive_ms (as for ratelimiter.tryset)
-- returns {number, 1}, or {number, 0} if the limiter has no rate
local session, number, session_ms = KEYS[6], ARGV[1], ARGV[2]
-- include session
-- include replay
local was = redis.call('HGET', KEYS[1], 'type')
if not was then
  return answered(0)
end
redis.call('HSET', KEYS[1], 'rate', ARGV[3], 'interval', ARGV[4], 'type', ARGV[5], 'keepAliveTime', ARGV[6])
if tonumber(ARGV[6]) > 0 then
  redis.call('PEXPIRE', KEYS[1], ARGV[6])
else
  redis.call('PERSIST', KEYS[1])
end
redis.call('DEL', KEYS[2], KEYS[4])
if was ~= ARGV[5] then
  redis.call('DEL', KEYS[3], KEYS[5])
  return answered(1)
end
-- include ratelimiter
store(sweep(), true)
return answered(1)
