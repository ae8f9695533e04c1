-- Takes back some of what a take gave, because those who wanted it have left. The
-- take's own record stays, of no permits, so that a request for it that comes late
-- finds it; the others are a record of their own.
-- KEYS limiter value permits own_value own_permits recount own_recount
-- ARGV random rest given back (16 bytes each; the permits of the record, and how many are not used)
-- returns 1, or 0 if there is no such record
local given, back = tonumber(ARGV[3]), tonumber(ARGV[4])
-- include ratelimiter
if not set then
  return 0
end
local free = sweep(0)
local head = string.char(16) .. ARGV[1]
local score = redis.call('ZSCORE', permits, head .. count(given))
if score then
  redis.call('ZREM', permits, head .. count(given))
  redis.call('ZADD', permits, score, head .. count(0))
  if given > back then
    redis.call('ZADD', permits, score, string.char(16) .. ARGV[2] .. count(given - back))
  end
  free = math.min(rate, free + back)
end
store(free, false)
return score and 1 or 0
