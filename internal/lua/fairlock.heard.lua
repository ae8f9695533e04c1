-- Says that a client's waiters live, while their own requests wait for a slot that moves:
-- those need keys that are at two nodes, or not there. This one key always is at one.
-- KEYS alive
-- ARGV client
-- returns 1 if the client waits, as far as is known there, else 0
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if not redis.call('ZSCORE', KEYS[1], ARGV[1]) then
  return 0
end
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('PEXPIRE', KEYS[1], 12000) -- as each poll does: twice the silence
return 1
