-- Notes that somebody waits to write, so that readers of redlatch hold back, or
-- that he no longer does. If nobody waits any more and nobody writes, readers who
-- held back are woken.
-- KEYS lock writers
-- ARGV owner wait_ms channel (0: he no longer waits)
-- returns how many wait now
local now = redis.call('TIME')
now = now[1] * 1000 + math.floor(now[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
local ms = tonumber(ARGV[2])
if ms > 0 then
  redis.call('ZADD', KEYS[2], now + ms, ARGV[1])
  redis.call('PEXPIRE', KEYS[2], ms)
elseif redis.call('ZREM', KEYS[2], ARGV[1]) == 1 and redis.call('EXISTS', KEYS[2]) == 0 and redis.call('HGET', KEYS[1], 'mode') ~= 'write' then
  redis.call('PUBLISH', ARGV[3], '1')
end
return redis.call('ZCARD', KEYS[2])
