-- Releases a lock for good, however often it was entered, and wakes one waiter
-- of every process. A hash with other fields is another type's lock under the
-- same name.
-- KEYS lock
-- ARGV owner channel (empty: nobody is told)
-- returns 1 if the lock was the owner's, 0 if it was not
-- include gone
if redis.call('HLEN', KEYS[1]) ~= 1 or redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  return gone()
end
redis.call('DEL', KEYS[1])
if ARGV[2] ~= '' then
  redis.call('PUBLISH', ARGV[2], '0')
end
return 1
