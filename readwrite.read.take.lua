-- Takes a read-write lock to read, if nobody writes, and nobody waits to write to
-- whom the reader gives precedence. A replay of a take whose reply was lost
-- changes nothing, but may raise the TTLs.
-- KEYS lock writers... (at most one, of those to whom to give precedence)
-- ARGV lease_ms owner
-- returns 1 if the owner reads now, else {TTL in ms, an owner}
-- include readwrite.timeout
-- include readwrite.holder
local owner, lease = ARGV[2], tonumber(ARGV[1])
if redis.call('HGET', KEYS[1], 'mode') ~= 'read' and redis.call('EXISTS', KEYS[1]) == 1 then
  return held_by(owner)
end
if KEYS[2] and redis.call('HEXISTS', KEYS[1], owner) == 0 then
  local now = redis.call('TIME')
  now = now[1] * 1000 + math.floor(now[2] / 1000)
  local first = redis.call('ZRANGEBYSCORE', KEYS[2], '(' .. now, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  if first[1] then
    return {math.max(0, first[2] - now), first[1]}
  end
end
redis.call('HSET', KEYS[1], 'mode', 'read', owner, 1)
if redis.call('PTTL', timeout_key(KEYS[1], owner, 1)) < lease then
  redis.call('SET', timeout_key(KEYS[1], owner, 1), 1, 'PX', lease)
end
if redis.call('PTTL', KEYS[1]) < lease then
  redis.call('PEXPIRE', KEYS[1], lease)
end
return 1
