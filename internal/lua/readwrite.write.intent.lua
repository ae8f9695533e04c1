-- Notes that somebody waits to write, so that readers of redlatch hold back, or
-- that he no longer does. If nobody waits any more and nobody writes, readers who
-- held back are woken.
-- KEYS lock writers
-- ARGV owner wait_ms channel (0: he no longer waits)
-- returns how many wait now
-- include finite
local now = redis.call('TIME')
now = now[1] * 1000 + math.floor(now[2] / 1000)
local waits = (finite(redis.call('ZSCORE', KEYS[2], ARGV[1])) or 0) > now
local others = redis.call('ZCOUNT', KEYS[2], '(' .. now, '+inf') - (waits and 1 or 0)
local ms = tonumber(ARGV[2])
if ms > 0 then
  redis.call('ZADD', KEYS[2], now + ms, ARGV[1])
  redis.call('PEXPIRE', KEYS[2], ms)
elseif others > 0 then
  redis.call('ZREM', KEYS[2], ARGV[1])
else
  local reads = redis.call('HGET', KEYS[1], 'mode') ~= 'write'
  redis.call('DEL', KEYS[2])
  if waits and reads then
    redis.call('PUBLISH', ARGV[3], '1')
  end
  return 0
end
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
return others + (ms > 0 and 1 or 0)
