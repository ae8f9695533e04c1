-- Removes a semaphore.
-- KEYS semaphore session
-- ARGV number session_ms
-- acked
-- returns {number, 1 if there was one, else 0}
local number, session_ms, session = ARGV[1], ARGV[2], KEYS[2]
-- include session
-- include replay
redis.call('GET', KEYS[1]) -- an error, if it is no semaphore
return answered(redis.call('DEL', KEYS[1]))
