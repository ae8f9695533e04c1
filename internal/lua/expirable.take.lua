-- Gives permits to those who ask, in their order, up to the first who cannot have
-- all of his. An id that stands there already is the replay of a take whose reply
-- was lost: it costs nothing, but its time may be raised.
-- KEYS free timeouts
-- ARGV channel ask... (for each who asks: lease_ms, how many, and so many ids)
-- acked
-- returns {how many of those who ask got theirs, or -1 if the semaphore has never
-- been given permits, in how many ms the first permit is over, or -1}
local free, timeouts = KEYS[1], KEYS[2]
-- include expirable
-- include finite
local available = tonumber(redis.call('GET', free) or '')
if not available then
  return {-1, -1}
end
-- Those whose time is over can be had, and are swept in the end: one that its owner has anew is not.
local over, given, at, again = ended(), 0, 2, false
available = available + over
while ARGV[at] do
  local until_ms, last = now + ARGV[at], at + 1 + ARGV[at + 1]
  local scores, missing, anew = {}, 0, 0
  for i = at + 2, last do
    scores[i] = tonumber(redis.call('ZSCORE', timeouts, ARGV[i]) or '')
    if not scores[i] then
      missing = missing + 1
    elseif scores[i] <= now then
      anew = anew + 1
    end
  end
  local costs = missing + anew
  if costs > 0 and costs > available then
    break
  end
  again = again or costs == 0
  if missing > 0 then
    redis.call('ZADD', timeouts, 'XX', until_ms, '') -- refused here if at all: see sweep
    redis.call('DECRBY', free, missing)
  end
  available, over = available - costs, over - anew
  for i = at + 2, last do
    if not scores[i] or scores[i] < until_ms then
      redis.call('ZADD', timeouts, until_ms, ARGV[i])
    end
  end
  given, at = given + 1, last + 1
end
local first = redis.call('ZRANGE', timeouts, over, over, 'WITHSCORES')
sweep(ARGV[1], over)
local ttl = finite(redis.call('PTTL', free))
if given > 0 and ttl >= 0 then
  redis.call('PEXPIRE', timeouts, ttl) -- in the last millisecond, with 0, what is given ends at once
elseif given > 0 then
  if again then
    redis.call('PEXPIRE', timeouts, 1000000000) -- for WAIT it writes something: see raise
  end
  redis.call('PERSIST', timeouts)
end
-- Redisson's mark of a permit that never ends is 922337203685477.
if #first == 0 or tonumber(first[2]) >= 922337203685477 then
  return {given, -1}
end
return {given, tonumber(first[2]) - now}
