-- Adds permits to a semaphore, or takes some away. One that is made so has nothing of an
-- earlier one, see expirable.try_set.
-- KEYS free timeouts session
-- ARGV number session_ms channel permits
-- acked
-- returns {number, how many are free} of the session's last request
local free, timeouts, session = KEYS[1], KEYS[2], KEYS[3]
local number, session_ms = ARGV[1], ARGV[2]
-- include session
-- include replay
local there = redis.call('EXISTS', free) == 1
local left = redis.call('INCRBY', free, ARGV[4])
if not there then
  redis.call('DEL', timeouts)
end
if tonumber(ARGV[4]) > 0 then
  redis.call('PUBLISH', ARGV[3], ARGV[4])
end
return answered(left)
