-- Moves a lock that is held to write from one owner, of whom nothing is left, to
-- another of the same process, with a lease of its own.
-- KEYS lock token... (at most one, for an acquisition that is to have a token)
-- ARGV owner new_owner lease_ms token_ttl_ms... (0: the token key never expires)
-- acked
-- returns the token, or 1, if the lock is the new owner's, 0 if it is neither's
local owner, new, lease = ARGV[1] .. ':write', ARGV[2] .. ':write', ARGV[3]
local token_key, token_ttl_ms = KEYS[2], ARGV[4]
-- include move
-- include readwrite.timeout
if redis.call('HEXISTS', KEYS[1], owner) == 0 then
  return moved()
end
redis.pcall('DEL', timeout_key(KEYS[1], ARGV[1], 1)) -- what it read inside is over, here or elsewhere
return move(ARGV[1])
