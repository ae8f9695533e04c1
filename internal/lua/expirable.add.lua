-- Adds permits to a semaphore, or takes some away.
-- KEYS free session
-- ARGV number session_ms channel permits
-- returns {number, how many are free} of the session's last request
local free, session = KEYS[1], KEYS[2]
local number, session_ms = ARGV[1], ARGV[2]
-- include session
-- include replay
local left = redis.call('INCRBY', free, ARGV[4])
if tonumber(ARGV[4]) > 0 then
  redis.call('PUBLISH', ARGV[3], ARGV[4])
end
return answered(left)
