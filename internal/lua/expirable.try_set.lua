-- Gives a semaphore its permits, if it has none yet. What was given of an earlier one is
-- gone with it, but its key may last for a millisecond longer.
-- KEYS free timeouts session
-- ARGV number session_ms channel permits
-- acked
-- returns {number, 1 or 0} of the session's last request
local free, timeouts, session = KEYS[1], KEYS[2], KEYS[3]
local number, session_ms = ARGV[1], ARGV[2]
-- include session
-- include replay
if redis.call('EXISTS', free) == 1 then
  return answered(0)
end
redis.call('SET', free, ARGV[4])
redis.call('DEL', timeouts)
redis.call('PUBLISH', ARGV[3], ARGV[4])
return answered(1)
