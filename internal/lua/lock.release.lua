-- Releases a lock for good, however often it was entered, and wakes one waiter
-- of every process. A hash with other fields is another type's lock under the
-- same name.
-- KEYS lock
-- ARGV owner channel own_subscriptions (no channel: nobody is told)
-- returns 1 and how many others listen if the lock was the owner's, 0 if it was not
-- include gone
-- include tell
if redis.call('HLEN', KEYS[1]) ~= 1 or redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  return gone()
end
redis.call('DEL', KEYS[1])
if ARGV[2] ~= '' then
  return 1 + tell(ARGV[2], '0', ARGV[3])
end
return 1
