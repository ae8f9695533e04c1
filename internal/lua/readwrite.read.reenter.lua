-- Adds a read hold to what an owner holds already, which lets nobody else in: it
-- writes, or reads. To add what is there is the replay of a request whose reply
-- was lost: it may raise the TTLs.
-- KEYS lock proof...
-- ARGV owner lease_ms
-- acked
-- wants proof (the key that keeps the owner's read hold alive, of an owner that reads)
-- returns 1 if the owner reads now, 0 if it holds nothing
-- include gone
-- include readwrite.left
-- include raise
local lock, owner, keep_ms = KEYS[1], ARGV[1], tonumber(ARGV[2])
local reads = redis.call('HEXISTS', lock, owner)
if reads + redis.call('HEXISTS', lock, owner .. ':write') == 0 then
  return gone()
end
local proof_ms = left_of(lock, owner, 1)
if reads == 1 and not proof_ms then
  return timeout_key(lock, owner, 1)
end
-- include readwrite.keep
raise(lock, keep_ms)
if reads == 0 then
  redis.call('HSET', lock, owner, 1)
end
return 1
