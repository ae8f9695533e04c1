-- Releases for good whatever an owner holds of a read-write lock. The lock goes
-- when nobody is left whose read hold lives; it then wakes all who wait if it was
-- held to write, one waiter of every process if it was read. Otherwise it lasts
-- as long as the longest hold that is left. If that is not known, the owner's own
-- is released and nothing else: a second request, with the keys in question, does
-- the rest, whoever sends it.
-- KEYS lock proofs... (those keys)
-- ARGV owner channel own_subscriptions
-- returns 1 and how many others listen if the lock is free now, -1 if others hold it
-- still, 0 if the owner held nothing, the keys if they are to be in KEYS
-- include gone
-- include tell
-- include readwrite.longest
local lock, owner = KEYS[1], ARGV[1]
local mode, wrote, reads = unpack(redis.call('HMGET', lock, 'mode', owner .. ':write', owner))
wrote, reads = wrote and 1 or 0, reads and 1 or 0
local counts = count_holds(owner)
if not counts then
  return too_many()
end
if wrote + reads == 0 and (#KEYS == 1 or mode ~= 'read') then
  return gone()
end
local beside = wrote == 0 and mode == 'write' and redis.call('HLEN', lock) > 1 + reads
local longest, unseen = longest_read(lock, counts)
redis.call('HDEL', lock, owner .. ':write', owner)
redis.pcall('DEL', timeout_key(lock, owner, 1)) -- if it is elsewhere it proves nothing any more
if beside then
  return -1
end
if longest > 0 or #unseen > 0 then
  redis.call('HSET', lock, 'mode', 'read')
  if #unseen > 0 then
    return unseen
  end
  redis.call('PEXPIRE', lock, longest)
  return -1
end
redis.call('DEL', lock)
return 1 + tell(ARGV[2], tostring(wrote), ARGV[3])
