-- Releases for good whatever an owner holds of a read-write lock. The lock goes
-- when nobody is left whose read hold lives; it then wakes all who wait if it was
-- held to write, one waiter of every process if it was read. Otherwise it lasts
-- as long as the longest hold that is left.
-- KEYS lock
-- ARGV owner channel
-- returns 1 if the lock is free now, 2 if others hold it still, 0 if the owner
-- held nothing
-- include gone
-- include readwrite.timeout
-- include readwrite.longest
local owner, mode = ARGV[1], redis.call('HGET', KEYS[1], 'mode')
local wrote = redis.call('HDEL', KEYS[1], owner .. ':write')
if wrote + redis.call('HDEL', KEYS[1], owner) == 0 then
  return gone()
end
redis.call('DEL', timeout_key(KEYS[1], owner, 1))
if wrote == 0 and mode == 'write' and redis.call('HLEN', KEYS[1]) > 1 then
  return 2
end
local longest = longest_read()
if longest > 0 then
  redis.call('HSET', KEYS[1], 'mode', 'read')
  redis.call('PEXPIRE', KEYS[1], longest)
  return 2
end
redis.call('DEL', KEYS[1])
redis.call('PUBLISH', ARGV[2], tostring(wrote))
return 1
