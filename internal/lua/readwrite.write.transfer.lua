-- Moves a lock that is held to write from one owner, of whom nothing is left, to
-- another of the same process, with a lease of its own.
-- KEYS lock token... (at most one, for an acquisition that is to have a token)
-- ARGV owner new_owner lease_ms token_ttl_ms... (0: the token key never expires)
-- returns the token, or 1, if the lock is the new owner's, 0 if it is neither's
-- include gone
local owner, new, lease = ARGV[1], ARGV[2] .. ':write', ARGV[3]
local token_key, token_ttl_ms = KEYS[2], ARGV[4]
-- include token
-- include readwrite.timeout
if redis.call('HEXISTS', KEYS[1], owner .. ':write') == 1 then
  redis.call('PEXPIRE', KEYS[1], lease) -- first: what takes memory must not be the first to write
  redis.call('HSET', KEYS[1], new, 1)
  redis.call('HDEL', KEYS[1], owner .. ':write', owner) -- of what it read inside, too
  redis.call('DEL', timeout_key(KEYS[1], owner, 1))
  return fencing_token(false)
end
if redis.call('HEXISTS', KEYS[1], new) == 0 then
  return gone()
end
if redis.call('PTTL', KEYS[1]) < tonumber(lease) then
  redis.call('PEXPIRE', KEYS[1], lease)
end
return fencing_token(true)
