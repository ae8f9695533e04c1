-- Gives a limiter its rate, if it has none.
-- KEYS limiter session
-- ARGV number session_ms rate interval_ms type keep_alive_ms (type: 0 for all clients, 1 for each; keep-alive 0: for ever)
-- returns {number, 1}, or {number, 0} if it has one
local session, number, session_ms = KEYS[2], ARGV[1], ARGV[2]
-- include session
-- include replay
if redis.call('HEXISTS', KEYS[1], 'type') == 1 then
  return answered(0)
end
redis.call('HSET', KEYS[1], 'rate', ARGV[3], 'interval', ARGV[4], 'type', ARGV[5], 'keepAliveTime', ARGV[6])
if tonumber(ARGV[6]) > 0 then
  redis.call('PEXPIRE', KEYS[1], ARGV[6])
end
return answered(1)
