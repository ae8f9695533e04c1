-- Gives a limiter a rate. It begins anew, or what was given in the new interval still counts; that of another type
-- never does. The state that other clients have for themselves stays: it is theirs.
-- KEYS limiter value permits own_value own_permits recount own_recount session
-- ARGV number session_ms rate interval_ms type keep_alive_ms update keep
-- (as for ratelimiter.tryset; update: 1 for a limiter that has a rate only; keep: 1 for what was given still to count)
-- returns {number, 1}, or {number, 0} if the limiter has no rate
local session, number, session_ms = KEYS[8], ARGV[1], ARGV[2]
-- include session
-- include replay
-- include ratelimiter.only
local was = redis.call('HGET', KEYS[1], 'type')
if ARGV[7] == '1' and not was then
  return answered(0)
end
-- include ratelimiter.rate
redis.call('DEL', KEYS[2], KEYS[4])
if ARGV[8] == '0' or was ~= ARGV[5] then
  redis.call('DEL', KEYS[3], KEYS[5], KEYS[6], KEYS[7])
  return answered(1)
end
-- include ratelimiter
store(sweep(0), true)
return answered(1)
