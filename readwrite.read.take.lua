-- Takes a read-write lock to read, if nobody writes. A replay of a take whose
-- reply was lost changes nothing, but may raise the TTLs.
-- KEYS lock
-- ARGV lease_ms owner
-- returns 1 if the owner reads now, else {TTL in ms, an owner}
-- include readwrite.timeout
-- include readwrite.holder
local owner, lease = ARGV[2], tonumber(ARGV[1])
if redis.call('HGET', KEYS[1], 'mode') ~= 'read' and redis.call('EXISTS', KEYS[1]) == 1 then
  return held_by(owner)
end
redis.call('HSET', KEYS[1], 'mode', 'read', owner, 1)
if redis.call('PTTL', timeout_key(KEYS[1], owner, 1)) < lease then
  redis.call('SET', timeout_key(KEYS[1], owner, 1), 1, 'PX', lease)
end
if redis.call('PTTL', KEYS[1]) < lease then
  redis.call('PEXPIRE', KEYS[1], lease)
end
return 1
