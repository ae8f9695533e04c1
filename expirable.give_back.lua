-- Gives permits back by their ids: all of them, or none if one is not live.
-- KEYS free timeouts session
-- ARGV number session_ms channel id...
-- returns {number, how many} of the session's last request; 0: nothing was done
local free, timeouts, session = KEYS[1], KEYS[2], KEYS[3]
local number, session_ms = ARGV[1], ARGV[2]
-- include session
-- include expirable
-- include replay
sweep(ARGV[3])
for i = 4, #ARGV do
  if not redis.call('ZSCORE', timeouts, ARGV[i]) then
    return answered(0)
  end
end
local back = 0
for i = 4, #ARGV do
  back = back + redis.call('ZREM', timeouts, ARGV[i])
end
redis.call('INCRBY', free, back)
redis.call('PUBLISH', ARGV[3], back)
return answered(back)
