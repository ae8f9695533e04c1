-- Gives a limiter its rate, if it has none. A request that is sent again and finds this
-- rate takes it for its own. Only such a one is remembered: a limiter that lasts for a
-- second is to leave nothing that lasts for longer. The limiter begins anew: the state of
-- one that has ended may last for a millisecond longer, and the first take would keep it.
-- KEYS limiter value permits own_value own_permits recount own_recount session
-- ARGV number session_ms rate interval_ms type keep_alive_ms (type: 0 for all clients, 1 for each; keep-alive 0: for ever)
-- returns {number, 1 if it has this rate by that, else 0}
local session, number, session_ms = KEYS[8], ARGV[1], ARGV[2]
-- include session
local before = executed(true)
if before then
  return before
end
-- include ratelimiter.only
local answer = 1
local has = redis.call('HMGET', KEYS[1], 'rate', 'interval', 'type', 'keepAliveTime')
if not has[3] then
  -- include ratelimiter.rate
  redis.call('DEL', KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7])
elseif not again or has[1] ~= ARGV[3] or has[2] ~= ARGV[4] or has[3] ~= ARGV[5] or (has[4] or '0') ~= ARGV[6] then
  answer = 0
end
if again then
  return answered(answer)
end
return {tonumber(number), answer}
