-- Ends a hold whose lock is to stay for a while: nobody has it any more, and it is free when its TTL is
-- over. Waiters are told, who may have seen a later end.
-- KEYS lock
-- ARGV owner channel rest_ms (no channel: nobody is told)
-- returns 1 if the lock was the owner's, 0 if it was not
-- include gone
if redis.call('HLEN', KEYS[1]) ~= 1 or redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  return gone()
end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
if ARGV[2] ~= '' then
  redis.call('PUBLISH', ARGV[2], '0')
end
return 1
