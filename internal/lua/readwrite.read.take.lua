-- Takes a read-write lock to read, if nobody writes, and nobody waits to write to
-- whom the reader gives precedence. A replay of a take whose reply was lost
-- changes nothing, but may raise the TTLs.
-- KEYS lock others... (the writers to whom to give precedence, if that is wanted; proof)
-- ARGV lease_ms owner
-- acked
-- wants proof (the key that keeps the owner's read hold alive, of an owner that reads)
-- returns 1 if the owner reads now, else {TTL in ms, an owner}
-- include readwrite.left
-- include readwrite.holder
-- include finite
-- include raise
local lock, owner, keep_ms = KEYS[1], ARGV[2], tonumber(ARGV[1])
local mode, reads = unpack(redis.call('HMGET', lock, 'mode', owner))
if mode ~= 'read' and redis.call('EXISTS', lock) == 1 then
  return held_by(owner)
end
if KEYS[2] and KEYS[2] ~= timeout_key(lock, owner, 1) and not reads then
  local now = redis.call('TIME')
  now = now[1] * 1000 + math.floor(now[2] / 1000)
  local first = redis.call('ZRANGEBYSCORE', KEYS[2], '(' .. now, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  if first[1] then
    return {math.max(0, finite(first[2]) - now), first[1]}
  end
end
local proof_ms = left_of(lock, owner, 1)
if reads and not proof_ms then
  return timeout_key(lock, owner, 1)
end
if not proof_ms or proof_ms == -2 then
  redis.call('SET', timeout_key(lock, owner, 1), '1', 'PX', keep_ms) -- first: it is refused if there is no memory, or where no key can be made
elseif proof_ms < keep_ms then
  redis.call('PEXPIRE', timeout_key(lock, owner, 1), keep_ms)
end
redis.call('HSET', lock, 'mode', 'read', owner, '1')
raise(lock, keep_ms)
return 1
