-- Sets the hold count of a lock that is the owner's, after a re-entry or the
-- release of an inner hold. A retry moves the lock to a new owner field, so
-- that the first request, should it arrive late, finds nothing of its own.
-- KEYS lock
-- ARGV owner new_owner count lease_ms
-- returns 1 if the lock is the owner's (now the new owner's), 0 if it is not
-- include gone
local owner, new, lease = ARGV[1], ARGV[2], tonumber(ARGV[4])
if redis.call('HEXISTS', KEYS[1], owner) == 1 then
  redis.call('HDEL', KEYS[1], '') -- no owner: what takes memory must not be the first to write
  redis.call('HSET', KEYS[1], new, ARGV[3])
  if new ~= owner then
    redis.call('HDEL', KEYS[1], owner)
  end
elseif redis.call('HEXISTS', KEYS[1], new) == 0 then
  return gone()
end
if redis.call('PTTL', KEYS[1]) < lease then
  redis.call('PEXPIRE', KEYS[1], lease)
end
return 1
