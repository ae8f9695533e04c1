-- Deletes a semaphore and its permits.
-- KEYS free timeouts session
-- ARGV number session_ms
-- acked
-- returns {number, 1 or 0} of the session's last request
local session, number, session_ms = KEYS[3], ARGV[1], ARGV[2]
-- include session
-- include replay
redis.call('GET', KEYS[1]) -- an error, if it is no semaphore
if redis.call('DEL', KEYS[1], KEYS[2]) > 0 then
  return answered(1)
end
return answered(0)
