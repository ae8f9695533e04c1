-- Gives other processes their turn, if any of them waits. Otherwise the lock
-- moves to a new owner field and stays.
-- KEYS lock token... (at most one, for an acquisition that is to have a token)
-- ARGV owner new_owner lease_ms channel own_subscriptions yield_anyway token_ttl_ms... (0: the token key never expires; -1: nor does it begin with 1)
-- acked
-- returns -1 if the lock is neither owner's, {token or 1} if it is the new
-- owner's now, else how many other subscribers it was released to
local owner, new, lease = ARGV[1], ARGV[2], ARGV[3]
local token_key, token_ttl_ms = KEYS[2], ARGV[7]
-- include move
-- include tell
if redis.call('HEXISTS', KEYS[1], owner) == 0 then
  local token = moved()
  return token == 0 and -1 or {token}
end
local channel, others = ARGV[4], 0
if channel ~= '' then
  others = listening(channel, ARGV[5]) or 0
end
if others > 0 or ARGV[6] == '1' then
  redis.call('DEL', KEYS[1])
  if channel ~= '' then
    redis.call('PUBLISH', channel, '0')
  end
  return others
end
return {move()}
