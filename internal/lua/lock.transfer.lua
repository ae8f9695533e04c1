-- Moves a lock from one owner field to another of the same process, with a
-- lease of its own.
-- KEYS lock token... (at most one, for an acquisition that is to have a token)
-- ARGV owner new_owner lease_ms token_ttl_ms... (0: the token key never expires; -1: nor does it begin with 1)
-- acked
-- returns the token, or 1, if the lock is the new owner's, 0 if it is neither's
local owner, new, lease = ARGV[1], ARGV[2], ARGV[3]
local token_key, token_ttl_ms = KEYS[2], ARGV[4]
-- include move
if redis.call('HEXISTS', KEYS[1], owner) == 0 then
  return moved()
end
return move()
