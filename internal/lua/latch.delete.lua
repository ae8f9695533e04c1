-- Deletes a latch. All that wait are told that it is at 0: after Redisson's
-- delete, which publishes a 1, its own waiters go on waiting.
-- KEYS latch session
-- ARGV number session_ms channel
-- returns {number, 1 if there was one, else 0}
local session, number, session_ms = KEYS[2], ARGV[1], ARGV[2]
-- include session
-- include replay
if not redis.call('GET', KEYS[1]) then
  return answered(0)
end
redis.call('DEL', KEYS[1])
redis.call('PUBLISH', ARGV[3], '0')
return answered(1)
