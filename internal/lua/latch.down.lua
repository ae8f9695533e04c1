-- Counts a latch down for some callers, by one for each, not below 0. At 0 its key
-- goes, and all that wait are told.
-- KEYS latch session
-- ARGV number session_ms channel callers
-- returns {number, 0 if some are left, 1 if the latch has come to 0 by that, 2 if it
-- was not set: nothing was counted}
local session, number, session_ms = KEYS[2], ARGV[1], ARGV[2]
-- include session
-- include replay
local count = redis.call('GET', KEYS[1])
if not count then
  return answered(2)
end
redis.call('PEXPIRE', session, session_ms) -- what takes memory must not be the first to write
local left = redis.call('DECRBY', KEYS[1], ARGV[4])
if left > 0 then
  return answered(0)
end
redis.call('DEL', KEYS[1])
if tonumber(count) <= 0 then
  return answered(2)
end
redis.call('PUBLISH', ARGV[3], '0')
return answered(1)
