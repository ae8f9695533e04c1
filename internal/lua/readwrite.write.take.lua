-- Takes a free read-write lock to write. To take what this owner writes already
-- is the replay of a take whose reply was lost: it may raise the TTL.
-- KEYS lock token... (at most one, for an acquisition that is to have a token)
-- ARGV lease_ms owner token_ttl_ms... (0: the token key never expires)
-- acked
-- returns the token, or 1, if the lock is the owner's, else {TTL in ms, an owner}
local token_key, token_ttl_ms = KEYS[2], ARGV[3]
-- include token
-- include readwrite.holder
local field = ARGV[2] .. ':write'
if redis.call('EXISTS', KEYS[1]) == 0 then
  local token = fencing_token(false)
  redis.call('HSET', KEYS[1], 'mode', 'write', field, '1')
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
  return token
end
if redis.call('HEXISTS', KEYS[1], field) == 0 then
  return held_by(ARGV[2])
end
-- include raise
raise(KEYS[1], ARGV[1])
return fencing_token(true)
