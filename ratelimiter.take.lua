-- Gives permits to the first of those who are in line, as many as can have what
-- they want. What they got is one record. To a replay it is given from now on,
-- for that is when they learn of it; if it has left the window meanwhile, they
-- got nothing.
-- KEYS limiter value permits own_value own_permits session
-- ARGV number session_ms skew_ms random wanted... (16 bytes; one number for each who is in line)
-- returns {number, answer, rate}: how many got what they want, or minus the ms
-- after which the first can have it, or 0 if the limiter has no rate
local session, number, session_ms = KEYS[6], ARGV[1], ARGV[2]
local skew, random = ARGV[3], ARGV[4]
-- include session
-- include ratelimiter
local function record(n)
  return string.char(16) .. random .. count(n)
end

local last = executed()
if last then
  if not set then
    last[2] = 0
  elseif last[1] == tonumber(number) and last[2] > 0 then
    local n = 0
    for i = 5, 4 + last[2] do
      n = n + ARGV[i]
    end
    if redis.call('ZSCORE', permits, record(n)) then
      redis.call('ZADD', permits, stamp, record(n))
    else
      last[2] = -1
    end
  end
  last[3] = rate or 0
  return last
end
if not set then
  local answer = answered(0)
  answer[3] = 0
  return answer
end
-- What was given in the future was given by now: a clock was wrong.
for _, ahead in ipairs(redis.call('ZRANGEBYSCORE', permits, '(' .. stamp + skew, '+inf', 'LIMIT', 0, 1000)) do
  redis.call('ZADD', permits, stamp, ahead)
end

local free = sweep()
local given, n = 0, 0
for i = 5, #ARGV do
  local wanted = tonumber(ARGV[i])
  if n + wanted > free then
    break
  end
  given, n = given + 1, n + wanted
end

-- wait returns in how many ms there will be as many permits as the first wants,
-- if nobody takes any.
local function wait()
  local missing, from, at = ARGV[5] - free, 0, now
  while missing > 0 do
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

local answer
if given > 0 then
  redis.call('ZADD', permits, stamp, record(n))
  store(free - n, true)
  answer = answered(given)
else
  if redis.call('GET', value) ~= tostring(free) then
    store(free, false)
  end
  answer = answered(-wait())
end
answer[3] = rate
return answer
