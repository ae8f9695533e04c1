-- Adds a read hold to what an owner holds already, which lets nobody else in: it
-- writes, or reads. To add what is there is the replay of a request whose reply
-- was lost: it may raise the TTLs.
-- KEYS lock
-- ARGV owner lease_ms
-- returns 1 if the owner reads now, 0 if it holds nothing
-- include gone
-- include readwrite.timeout
local lock, owner, keep_ms = KEYS[1], ARGV[1], tonumber(ARGV[2])
local reads = redis.call('HEXISTS', lock, owner)
if reads + redis.call('HEXISTS', lock, owner .. ':write') == 0 then
  return gone()
end
if redis.call('PTTL', lock) < keep_ms then
  redis.call('PEXPIRE', lock, keep_ms)
end
-- include readwrite.keep
if reads == 0 then
  redis.call('HSET', lock, owner, 1) -- not the first to write: what takes memory must not be
end
return 1
