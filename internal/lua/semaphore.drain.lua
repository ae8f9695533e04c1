-- Takes all permits, also less than none: then there are none. The TTL stays
-- what it is.
-- KEYS semaphore session
-- ARGV number session_ms
-- acked
-- returns {number, how many they were}
local number, session_ms, session = ARGV[1], ARGV[2], KEYS[2]
-- include session
-- include replay
local available = tonumber(redis.call('GET', KEYS[1]) or 0)
if available ~= 0 then
  redis.call('DECRBY', KEYS[1], available)
end
return answered(available)
