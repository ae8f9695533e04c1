-- Gives permits to the first of those who are in line, as many as can have what
-- they want. What they got is one record, known by its random bytes: that of a
-- replay gives from now on, for that is when its callers learn of it; and what was
-- undone is not given again for as long as its record would count.
-- KEYS limiter value permits own_value own_permits recount own_recount
-- ARGV skew_ms random wanted... (16 bytes; one number for each who is in line)
-- returns {answer, rate}: how many got what they want, or minus the ms after which
-- the first can have it, or 0 if the limiter has no rate
local skew, random = ARGV[1], ARGV[2]
-- include ratelimiter
if not set then
  return {0, 0}
end
local function record(n)
  return string.char(16) .. random .. count(n)
end

local ends, sum = {record(0)}, 0 -- the records that an earlier attempt may have left
for i = 3, #ARGV do
  sum = sum + ARGV[i]
  if sum > rate then
    break
  end
  ends[#ends + 1] = record(sum)
end
for i, score in ipairs(redis.call('ZMSCORE', permits, unpack(ends))) do
  if score and i == 1 then
    return {-1, rate}
  elseif score then
    redis.call('ZADD', permits, stamp, ends[i])
    lasts()
    return {i - 1, rate}
  end
end
-- What was given in the future was given by now: a clock was wrong.
for _, ahead in ipairs(redis.call('ZRANGEBYSCORE', permits, '(' .. stamp + skew, '+inf', 'LIMIT', 0, 1000)) do
  redis.call('ZADD', permits, stamp, ahead)
end

local free = sweep(tonumber(ARGV[3]))
local given, n = 0, 0
for i = 3, #ARGV do
  local wanted = tonumber(ARGV[i])
  if n + wanted > free then
    break
  end
  given, n = given + 1, n + wanted
end

-- wait returns in how many ms there will be as many permits as the first wants,
-- if nobody takes any.
local function wait()
  if pending then
    return 1
  end
  local missing, from, at = ARGV[3] - free, 0, now
  while missing > 0 and from < most do
    local records = redis.call('ZRANGE', permits, from, from + math.min(missing, 1000) - 1, 'WITHSCORES')
    if #records == 0 then
      break
    end
    for i = 1, #records, 2 do
      missing = missing - size(records[i])
      at = finite(records[i + 1])
      if missing <= 0 then
        break
      end
    end
    from = from + #records / 2
  end
  return math.max(1, math.ceil(at + interval - now))
end

if given > 0 then
  redis.call('ZADD', permits, stamp, record(n))
  store(free - n, true)
  return {given, rate}
end
if redis.call('GET', value) ~= tostring(free) then
  store(free, false)
end
return {-wait(), rate}
