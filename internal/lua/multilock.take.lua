-- Takes several free locks, all of them or none. Those that are their owner's
-- already are the replay of a take whose reply was lost: only their TTL may be
-- raised.
-- KEYS lock...
-- ARGV lease_ms owner... (one for each lock)
-- acked
-- returns 1 if all are their owner's, else {which is not (from 1), its TTL in
-- ms, field of its owner}
-- include raise
local lease = ARGV[1]
local held = {}
for i, key in ipairs(KEYS) do
  if redis.call('HLEN', key) > 10000 then -- to go through them would stop the server
    return redis.error_reply('WRONGTYPE more fields than a lock has: ' .. string.sub(key, 1, 200))
  end
  held[i] = redis.call('HKEYS', key)[1]
  if held[i] and held[i] ~= ARGV[i + 1] then
    return {i, redis.call('PTTL', key), held[i]}
  end
end
for i, key in ipairs(KEYS) do
  if not held[i] then
    redis.call('HSET', key, ARGV[i + 1], '1')
  end
  raise(key, lease)
end
return 1
