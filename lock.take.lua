-- Takes a free lock. To take what is this owner's already is the replay of a
-- take whose reply was lost: it changes nothing, but may raise the TTL.
-- KEYS lock
-- ARGV lease_ms owner
-- returns 1 if the lock is the owner's, else {TTL in ms, field of the owner}
local fields = redis.call('HKEYS', KEYS[1])
if #fields == 0 then
  redis.call('HSET', KEYS[1], ARGV[2], 1)
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
  return 1
end
local ttl = redis.call('PTTL', KEYS[1])
if fields[1] ~= ARGV[2] then
  return {ttl, fields[1]}
end
if ttl < tonumber(ARGV[1]) then
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
end
return 1
