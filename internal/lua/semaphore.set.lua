-- Makes a semaphore, if there is none, and tells whoever listens how many
-- permits it has.
-- KEYS semaphore session
-- ARGV number session_ms channel permits ttl_ms (0: it has none)
-- acked
-- returns {number, 1}; {number, 0} if there is one already
local number, session_ms, session = ARGV[1], ARGV[2], KEYS[2]
-- include session
-- include replay
if redis.call('EXISTS', KEYS[1]) == 1 then
  return answered(0)
end
redis.call('SET', KEYS[1], ARGV[4])
if ARGV[5] ~= '0' then
  redis.call('PEXPIRE', KEYS[1], ARGV[5])
end
redis.call('PUBLISH', ARGV[3], ARGV[4])
return answered(1)
