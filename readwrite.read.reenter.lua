-- Adds a read hold to what an owner holds already, which lets nobody else in: it
-- writes, or reads. To add what is there is the replay of a request whose reply
-- was lost: it may raise the TTLs.
-- KEYS lock
-- ARGV owner lease_ms
-- returns 1 if the owner reads now, 0 if it holds nothing
-- include gone
-- include readwrite.timeout
local lock, owner, lease = KEYS[1], ARGV[1], tonumber(ARGV[2])
local wrote = redis.call('HEXISTS', lock, owner .. ':write')
if wrote + redis.call('HEXISTS', lock, owner) == 0 then
  return gone()
end
if redis.call('PTTL', lock) < lease then
  redis.call('PEXPIRE', lock, lease)
end
local keep_ms = lease
if wrote == 1 then
  keep_ms = math.max(lease, redis.call('PTTL', lock)) -- it is this owner's alone
end
-- include readwrite.keep
if redis.call('HEXISTS', lock, owner) == 0 then
  redis.call('HDEL', lock, '') -- what takes memory must not be the first to write
  redis.call('HSET', lock, owner, 1)
end
return 1
