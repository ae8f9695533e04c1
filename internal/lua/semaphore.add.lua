-- Adds to the permits, or takes some away, and tells whoever listens how many
-- there are then. The TTL stays what it is.
-- KEYS semaphore session
-- ARGV number session_ms channel permits create (1: there need not be such a semaphore)
-- acked
-- returns {number, 1}; {number, 0} if there is no such semaphore, and none made
local number, session_ms, session = ARGV[1], ARGV[2], KEYS[2]
-- include session
-- include replay
if ARGV[5] ~= '1' and redis.call('EXISTS', KEYS[1]) == 0 then
  return answered(0)
end
redis.call('INCRBY', KEYS[1], ARGV[4])
redis.call('PUBLISH', ARGV[3], math.max(0, redis.call('GET', KEYS[1]))) -- Redisson minds a negative number
return answered(1)
