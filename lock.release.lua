-- Releases a lock for good, however often it was entered, and wakes one waiter
-- of every process.
-- KEYS lock
-- ARGV owner channel
-- returns 1 if the lock was the owner's, 0 if it was not
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  return 0
end
redis.call('DEL', KEYS[1])
redis.call('PUBLISH', ARGV[2], '0')
return 1
