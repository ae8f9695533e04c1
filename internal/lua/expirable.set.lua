-- Sets how many permits there are in all, those that are given included. If more
-- than that are given, less than none are free.
-- KEYS free timeouts session
-- ARGV number session_ms channel permits
-- acked
-- returns {number, by how many it changed} of the session's last request
local free, timeouts, session = KEYS[1], KEYS[2], KEYS[3]
local number, session_ms = ARGV[1], ARGV[2]
-- include session
-- include replay
local permits, available = tonumber(ARGV[4]), redis.call('GET', free)
local change = permits
if available then
  change = permits - tonumber(available) - redis.call('ZCARD', timeouts)
end
if change ~= 0 or not available then
  redis.call('INCRBY', free, change)
  if not available then
    redis.call('DEL', timeouts) -- of an earlier semaphore, see expirable.try_set
  end
  redis.call('PUBLISH', ARGV[3], permits)
end
return answered(change)
