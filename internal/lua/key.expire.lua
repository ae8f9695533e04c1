-- Lets a semaphore or a limiter end after a time, or last for ever: all its keys at once.
-- KEYS object more... (the last is the session; without the object nothing is done)
-- ARGV number session_ms ms type (ms: 0 for ever; type: that of the object, string or hash)
-- acked
-- returns {number, 1}; {number, 0} if there is no such object
local number, session_ms, session = ARGV[1], ARGV[2], KEYS[#KEYS]
-- include session
-- include replay
local there -- or an error, if the object is something else
if ARGV[4] == 'hash' then
  there = redis.call('HEXISTS', KEYS[1], 'type') == 1 -- of a limiter, and of no lock
else
  there = redis.call('GET', KEYS[1])
end
if not there then
  return answered(0)
end
for i = 1, #KEYS - 1 do
  if ARGV[3] == '0' then
    redis.call('PERSIST', KEYS[i])
  else
    redis.call('PEXPIRE', KEYS[i], ARGV[3])
  end
end
return answered(1)
