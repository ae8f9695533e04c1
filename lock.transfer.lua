-- Moves a lock from one owner field to another of the same process, with a
-- lease of its own.
-- KEYS lock
-- ARGV owner new_owner lease_ms
-- returns 1 if the lock is the new owner's, 0 if it is neither's
local owner, new, lease = ARGV[1], ARGV[2], ARGV[3]
if redis.call('HEXISTS', KEYS[1], owner) == 1 then
  redis.call('HSET', KEYS[1], new, 1)
  redis.call('HDEL', KEYS[1], owner)
  redis.call('PEXPIRE', KEYS[1], lease)
  return 1
end
if redis.call('HEXISTS', KEYS[1], new) == 0 then
  return 0
end
if redis.call('PTTL', KEYS[1]) < tonumber(lease) then
  redis.call('PEXPIRE', KEYS[1], lease)
end
return 1
