-- Releases a lock for good, however often it was entered, and wakes one waiter
-- of every process. Other fields, which are none of ours, keep the hash.
-- KEYS lock
-- ARGV owner channel own_subscriptions (no channel: nobody is told)
-- returns 1 and how many others listen if the lock was the owner's, 0 if it was not
if redis.call('HDEL', KEYS[1], ARGV[1]) == 0 then -- which fails at a replica, that may lack what its primary has
  return 0
end
if ARGV[2] == '' then
  return 1
end
-- include tell
return 1 + tell(ARGV[2], '0', ARGV[3])
