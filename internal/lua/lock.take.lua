-- Takes a free lock. To take what is this owner's already is the replay of a
-- take whose reply was lost: it changes nothing, but may raise the TTL.
-- KEYS lock token... (at most one, for an acquisition that is to have a token)
-- ARGV lease_ms owner token_ttl_ms... (0: the token key never expires; -1: nor does it begin with 1)
-- acked
-- returns the token, or 1, if the lock is the owner's, else {TTL in ms, field
-- of the owner}
local token_key, token_ttl_ms = KEYS[2], ARGV[3]
-- include fields
if size == 0 then
  local token = 1
  if token_key then -- or else what makes one is not even defined, which takes time
    -- include token
    token = fencing_token(false)
  end
  redis.call('HSET', KEYS[1], ARGV[2], '1')
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
  return token
end
-- include token
if fields[1] ~= ARGV[2] then
  return {redis.call('PTTL', KEYS[1]), fields[1]}
end
-- include raise
raise(KEYS[1], ARGV[1])
return fencing_token(true)
