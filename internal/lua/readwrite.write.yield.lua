-- Gives other processes their turn, if any of them waits. Otherwise the lock,
-- held to write, moves to a new owner and stays.
-- KEYS lock token... (at most one, for an acquisition that is to have a token)
-- ARGV owner new_owner lease_ms channel own_subscriptions yield_anyway token_ttl_ms... (0: the token key never expires)
-- acked
-- returns -1 if the lock is neither owner's, {token or 1} if it is the new
-- owner's now, else how many other subscribers it was released to
local owner, new, lease = ARGV[1] .. ':write', ARGV[2] .. ':write', ARGV[3]
local token_key, token_ttl_ms = KEYS[2], ARGV[7]
-- include move
-- include tell
-- include readwrite.timeout
if redis.call('HEXISTS', KEYS[1], owner) == 0 then
  local token = moved()
  return token == 0 and -1 or {token}
end
local others = listening(ARGV[4], ARGV[5]) or 0
redis.pcall('DEL', timeout_key(KEYS[1], ARGV[1], 1)) -- what it read inside is over, here or elsewhere
if others > 0 or ARGV[6] == '1' then
  redis.call('DEL', KEYS[1])
  redis.call('PUBLISH', ARGV[4], '1')
  return others
end
return {move(ARGV[1])}
