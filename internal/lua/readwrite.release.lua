-- Releases for good whatever an owner holds of a read-write lock. The lock goes
-- when nobody is left whose read hold lives; it then wakes all who wait if it was
-- held to write, one waiter of every process if it was read. Otherwise it lasts
-- as long as the longest hold that is left.
-- KEYS lock
-- ARGV owner channel own_subscriptions
-- returns 1 and how many others listen if the lock is free now, -1 if others hold it
-- still, 0 if the owner held nothing
-- include gone
-- include tell
-- include readwrite.timeout
-- include readwrite.longest
local owner, mode = ARGV[1], redis.call('HGET', KEYS[1], 'mode')
local counts = count_holds(owner)
if not counts then
  return too_many()
end
local wrote = redis.call('HDEL', KEYS[1], owner .. ':write')
if wrote + redis.call('HDEL', KEYS[1], owner) == 0 then
  return gone()
end
redis.call('DEL', timeout_key(KEYS[1], owner, 1))
if wrote == 0 and mode == 'write' and redis.call('HLEN', KEYS[1]) > 1 then
  return -1
end
local longest = longest_read(counts)
if longest > 0 then
  redis.call('HSET', KEYS[1], 'mode', 'read')
  redis.call('PEXPIRE', KEYS[1], longest)
  return -1
end
redis.call('DEL', KEYS[1])
return 1 + tell(ARGV[2], tostring(wrote), ARGV[3])
