-- Gives a limiter its rate, if it has none.
-- KEYS limiter
-- ARGV rate interval_ms type keep_alive_ms (type: 0 for all clients, 1 for each; keep-alive 0: for ever)
-- returns 1, or if it has one 2 if that is the same, else 0
local has = redis.call('HMGET', KEYS[1], 'rate', 'interval', 'type', 'keepAliveTime')
if has[3] then
  if has[1] == ARGV[1] and has[2] == ARGV[2] and has[3] == ARGV[3] and (has[4] or '0') == ARGV[4] then
    return 2
  end
  return 0
end
redis.call('HSET', KEYS[1], 'rate', ARGV[1], 'interval', ARGV[2], 'type', ARGV[3], 'keepAliveTime', ARGV[4])
if tonumber(ARGV[4]) > 0 then
  redis.call('PEXPIRE', KEYS[1], ARGV[4])
end
return 1
