-- Sets a latch that nobody counts down. What another client left at 0 or below is
-- none: all that wait there have gone on.
-- KEYS latch session
-- ARGV number session_ms count channel
-- returns {number, 1 if it was set, 0 if it is being counted down}
local session, number, session_ms = KEYS[2], ARGV[1], ARGV[2]
-- include session
-- include replay
local count = redis.call('GET', KEYS[1])
if count and (tonumber(count) or 1) > 0 then
  return answered(0)
end
redis.call('SET', KEYS[1], ARGV[3])
redis.call('PUBLISH', ARGV[4], '1')
return answered(1)
