-- Takes a read-write lock to read, if nobody writes, and nobody waits to write to
-- whom the reader gives precedence. A replay of a take whose reply was lost
-- changes nothing, but may raise the TTLs.
-- KEYS lock writers... (at most one, of those to whom to give precedence)
-- ARGV lease_ms owner
-- returns 1 if the owner reads now, else {TTL in ms, an owner}
-- include readwrite.timeout
-- include readwrite.holder
-- include finite
local lock, owner, keep_ms = KEYS[1], ARGV[2], tonumber(ARGV[1])
if redis.call('HGET', lock, 'mode') ~= 'read' and redis.call('EXISTS', lock) == 1 then
  return held_by(owner)
end
if KEYS[2] and redis.call('HEXISTS', lock, owner) == 0 then
  local now = redis.call('TIME')
  now = now[1] * 1000 + math.floor(now[2] / 1000)
  local first = redis.call('ZRANGEBYSCORE', KEYS[2], '(' .. now, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  if first[1] then
    return {math.max(0, finite(first[2]) - now), first[1]}
  end
end
redis.call('HSET', lock, 'mode', 'read', owner, 1)
-- include readwrite.keep
if redis.call('PTTL', lock) < keep_ms then
  redis.call('PEXPIRE', lock, keep_ms)
end
return 1
