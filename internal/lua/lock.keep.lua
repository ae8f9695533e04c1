-- Ends a hold whose lock is to stay for a while: it is free when its TTL is over. It moves to an id that nobody
-- has, so that no late request of the owner raises the TTL. Waiters are told, who may have seen a later end.
-- KEYS lock
-- ARGV owner nobody channel rest_ms (no channel: nobody is told)
-- returns 1 if the lock was the owner's, 0 if it was not
-- include gone
local lock, owner, nobody = KEYS[1], ARGV[1], ARGV[2]
if redis.call('HEXISTS', lock, nobody) == 1 then
  return 1
end
if redis.call('HLEN', lock) ~= 1 or redis.call('HEXISTS', lock, owner) == 0 then
  return gone()
end
redis.call('PEXPIRE', lock, ARGV[4]) -- first: what takes memory must not be the first to write
redis.call('HSET', lock, nobody, 1)
redis.call('HDEL', lock, owner)
if ARGV[3] ~= '' then
  redis.call('PUBLISH', ARGV[3], '0')
end
return 1
