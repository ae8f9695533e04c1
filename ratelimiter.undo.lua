-- Takes back some of what a take gave, because those who wanted it have left.
-- KEYS limiter value permits own_value own_permits session
-- ARGV number session_ms random given back (16 bytes; the permits of the record, and how many are not used)
-- returns {number, 1}
local session, number, session_ms = KEYS[6], ARGV[1], ARGV[2]
local given, back = tonumber(ARGV[4]), tonumber(ARGV[5])
-- include session
-- include ratelimiter
-- include replay
if set then
  local free = sweep()
  local head = string.char(16) .. ARGV[3]
  local score = redis.call('ZSCORE', permits, head .. count(given))
  if score then
    redis.call('ZREM', permits, head .. count(given))
    if given > back then
      redis.call('ZADD', permits, score, head .. count(given - back))
    end
    free = math.min(rate, free + back)
  end
  store(free, false)
end
return answered(1)
