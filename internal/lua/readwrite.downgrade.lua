-- Ends the write holds of an owner that only reads from now on, which lets others
-- read too, and wakes them. If it does not write any more that has been done
-- before.
-- KEYS lock proof... (the key that keeps the owner's read hold alive)
-- ARGV owner channel
-- returns 1 if the owner reads, 0 if it holds nothing
-- include gone
-- include readwrite.left
-- include finite
local lock, owner = KEYS[1], ARGV[1]
if redis.call('HEXISTS', lock, owner .. ':write') == 1 then
  local keep_ms, proof_ms = math.max(1, finite(redis.call('PTTL', lock))), left_of(lock, owner, 1)
  -- include readwrite.keep
  redis.call('HDEL', lock, owner .. ':write')
  redis.call('HSET', lock, 'mode', 'read', owner, 1)
  redis.call('PUBLISH', ARGV[2], '1')
elseif redis.call('HEXISTS', lock, owner) == 0 then
  return gone()
end
return 1
